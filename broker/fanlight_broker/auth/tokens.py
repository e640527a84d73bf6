"""Tokens (JWT, RFC 7519; best practice RFC 8725): who a client is, signed by somebody whom the broker trusts.

Each key is for one algorithm, which follows from the key and never from the token: a token that names another one is
refused, `none` with it. What a token says about keys (`jwk`, `jku`, `x5c`) is not looked at. A token needs `exp`, and
is good for no longer than that: the connection ends then.

A token that was accepted is remembered by a keyed hash, with what it says, until it expires or the keys are read again:
a fleet that reconnects costs no signatures. Only whoever has the token can have its hash.

Who comes to be checked, and when, is in token_logins.py.
"""

import base64
import json
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from fanlight_broker.auth.password_file import USER_BYTES_MAX, why_not_a_user
from fanlight_broker.auth.token_keys import TokenKey, read_keys
from fanlight_broker.auth.users import permissions_of, why_not_groups, why_not_limits
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import Identity

TOKEN_BYTES_MAX: Final = 16 * 1024
REMEMBERED_BYTES_MAX: Final = 2 * 1024  # of a token that is remembered: it bounds what an identity takes


@dataclass(frozen=True, slots=True)
class TokenRules:
    """The settings of tokens. A claim may be a path: `realm_access.roles` is `roles` in the object `realm_access`."""

    keys_file: Path
    issuer: str | None = None
    audience: str | None = None
    leeway: float = 10.0  # seconds
    user_claim: str = "sub"
    groups_claim: str = "groups"
    permissions_claim: str = "permissions"
    limits_claim: str = "limits"
    cache_max: int = 10_000  # accepted tokens that are remembered; 0: none


class Tokens:
    """Checks tokens. Raises TokenKeysError from the constructor."""

    def __init__(self, rules: TokenRules, wall_clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keys: Sequence[TokenKey] = read_keys(rules.keys_file)
        self._credentials = {key: _fingerprint(key, rules) for key in self._keys}
        self._clock = wall_clock
        self._secret = os.urandom(32)
        self._accepted: OrderedDict[bytes, Identity] = OrderedDict()  # by `_hash`; the least recently used first

    def __len__(self) -> int:
        """Tokens that are remembered."""
        return len(self._accepted)

    def stands(self, credential: str) -> bool:
        """Whether a token that was accepted with this credential would be now, its time aside."""
        return credential in self._credentials.values()

    def claimed_user(self, token: str) -> str:
        """The user name that a token says, which nothing was checked of: for delays alone. "" if it says none."""
        if len(token) > TOKEN_BYTES_MAX:
            return ""
        payload = token.split(".")[1]
        try:
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        except (ValueError, RecursionError):
            return ""
        user = claim_of(claims, self._rules.user_claim) if isinstance(claims, dict) else None
        return user[:USER_BYTES_MAX] if isinstance(user, str) else ""

    def remembered(self, token: str) -> Identity | None:
        """Who a token is of that was accepted before, and has not expired."""
        if not self._accepted or len(token) > REMEMBERED_BYTES_MAX:
            return None
        known = self._hash(token)
        identity = self._accepted.get(known)
        if identity is None:
            return None
        if identity.expires is None or identity.expires <= self._clock():
            del self._accepted[known]
            return None
        self._accepted.move_to_end(known)
        return identity

    def check(self, token: str) -> Identity:
        """Who a token is of. Raises AuthenticationFailed."""
        identity = self._check(token)
        if self._rules.cache_max and len(token) <= REMEMBERED_BYTES_MAX:
            self._accepted[self._hash(token)] = identity
            if len(self._accepted) > self._rules.cache_max:
                self._accepted.popitem(last=False)
        return identity

    def _hash(self, token: str) -> bytes:
        return blake2b(token.encode(errors="surrogatepass"), key=self._secret, digest_size=32).digest()

    def _check(self, token: str) -> Identity:
        import jwt

        if len(token) > TOKEN_BYTES_MAX:
            raise AuthenticationFailed(f"a token of more than {TOKEN_BYTES_MAX} bytes")
        rules = self._rules
        try:
            key = self._key_for(jwt.get_unverified_header(token))
            claims = jwt.decode(
                token, key.key, algorithms=[key.algorithm], audience=rules.audience, issuer=rules.issuer,
                leeway=rules.leeway,
                options={"require": ["exp"], "verify_exp": False},  # below: it may be a fraction, or no number at all
            )
        except jwt.ImmatureSignatureError:
            raise AuthenticationFailed("the token is not valid yet (nbf, iat)") from None
        except jwt.InvalidAudienceError:
            raise AuthenticationFailed("the token is for another audience (aud)") from None
        except jwt.InvalidIssuerError:
            raise AuthenticationFailed("the token has another issuer (iss)") from None
        except jwt.MissingRequiredClaimError as error:
            raise AuthenticationFailed(f"the token has no {error.claim}") from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise AuthenticationFailed("the token is not valid") from None
        return self._identity(claims, self._credentials[key])

    def _key_for(self, header: Mapping[str, Any]) -> TokenKey:
        """The key that a token was signed with, if it may have been. Raises AuthenticationFailed."""
        algorithm, kid = header.get("alg"), header.get("kid")
        if "crit" in header:  # RFC 7515, 4.1.11: it has something that we do not know
            raise AuthenticationFailed("the token has critical extensions (crit)")
        fitting = [key for key in self._keys if key.algorithm == algorithm]
        named = [key for key in fitting if kid is not None and key.kid == kid]
        unnamed = [key for key in fitting if kid is None or key.kid is None]
        if len(found := named or unnamed) != 1:
            raise AuthenticationFailed("the token was not signed with a key of this broker (alg, kid)")
        return found[0]

    def _identity(self, claims: Mapping[str, Any], credential: str) -> Identity:
        rules, exp = self._rules, claims["exp"]
        if not isinstance(exp, (int, float)) or isinstance(exp, bool) or not 0 < exp < 1e12:
            raise AuthenticationFailed("the token is not valid: exp")
        expires = exp + rules.leeway
        if expires <= self._clock():
            raise AuthenticationFailed("the token has expired")
        user = claim_of(claims, rules.user_claim)
        if not isinstance(user, str) or why_not_a_user(user):
            raise AuthenticationFailed(f"the token has no user name that is allowed ({rules.user_claim})")
        groups, limits = claim_of(claims, rules.groups_claim), claim_of(claims, rules.limits_claim)
        groups, limits = [] if groups is None else groups, {} if limits is None else limits
        if isinstance(groups, str):
            groups = [each for each in groups.split(" ") if each]
        if reason := why_not_groups(groups) or why_not_limits(limits):
            raise AuthenticationFailed(f"the token is not valid: {reason}")
        try:
            permissions = permissions_of(claim_of(claims, rules.permissions_claim))
        except ValueError as error:
            raise AuthenticationFailed(f"the token is not valid: {error}") from None
        return Identity(
            user, verified=True, credential=credential, groups=frozenset(groups), expires=expires, limits=limits,
            permissions=permissions,
        )


def claim_of(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path with dots; None if the token has no such claim."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


def _fingerprint(key: TokenKey, rules: TokenRules) -> str:
    names = rules.user_claim, rules.groups_claim, rules.permissions_claim, rules.limits_claim
    texts = (rules.issuer or "", rules.audience or "", *names)
    parts = [key.fingerprint, *(f"{len(text)}:{text}" for text in texts)]
    return "token " + blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()
