"""The HTTP API, /api/v1 (docs/http-api.md; docs/decisions/0027-http-api.md).

Imported with the first client of HTTP, as all that needs aiohttp.
"""
