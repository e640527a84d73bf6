"""Places: what counts as one address, where addresses are counted."""

from ipaddress import IPv6Address, ip_address, ip_network


def place_of(address: str) -> str:
    """What counts as one address: for IPv6 its /64, because one host may use any address of it."""
    if ":" not in address:  # of IPv4, or no address: asked of each connection
        return address
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((found, 64), strict=False))
