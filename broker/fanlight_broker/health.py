"""Checks whether a running broker is alive: `fanlightd healthcheck`, for Docker's HEALTHCHECK.

Only the standard library, and no proxy: it runs every few seconds beside the broker.
"""

import http.client
import sys
from urllib.parse import urlsplit

from fanlight_broker.config import Exit, Settings

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # a broker that listens on all addresses is asked at loopback


def url_of(settings: Settings) -> str:
    """The URL at which the broker with these settings answers; "" if it has no HTTP listener."""
    if not settings.http or not settings.http_port:
        return ""
    host = settings.http_host.strip("[]")
    host = ANY_ADDRESS.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{settings.http_port}"


def check(url: str, timeout: float) -> int:
    """GET `url`/healthz, waiting `timeout` seconds at most for each step; 0 if it answers 200, else 1."""
    if not url:
        return _unhealthy("the settings have no HTTP listener, or one on a free port (0); use --url")
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            return _unhealthy(f"{url} is not a URL such as http://127.0.0.1:7421")
        connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)
    except ValueError as error:
        return _unhealthy(f"{url} is not a URL such as http://127.0.0.1:7421: {error}")
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return _unhealthy(f"{url}/healthz: {reason}")
    finally:
        connection.close()
    return Exit.OK if status == 200 else _unhealthy(f"{url}/healthz answered {status}")


def _unhealthy(reason: str) -> int:
    print(f"fanlightd: not healthy: {reason}", file=sys.stderr)
    return Exit.FAILED
