"""Strategies: any method, any table, any properties."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.field_table import Timestamp
from fanlight_broker.protocols.amqp.method_types import Wire
from fanlight_broker.protocols.amqp.methods import LAYOUTS, AnyMethod, MethodLayout
from fanlight_broker.protocols.amqp.properties import BasicProperties

texts = st.text(max_size=60).filter(lambda text: len(text.encode()) <= 255)
octets = st.binary(max_size=60)
no_text = octets.filter(lambda value: not is_text(value))
unsigned = {bits: st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64)}
decimals = st.builds(
    lambda whole, scale: Decimal(whole).scaleb(-scale), st.integers(0, 2**32 - 1), st.integers(0, 20)
)
scalars = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts, octets, st.none(), decimals,
    unsigned[64].map(Timestamp),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
tables = st.dictionaries(texts, values, max_size=5)

FIELDS: dict[Wire, st.SearchStrategy[Any]] = {
    Wire.BIT: st.booleans(), Wire.OCTET: unsigned[8], Wire.SHORT: unsigned[16], Wire.LONG: unsigned[32],
    Wire.LONGLONG: unsigned[64], Wire.SHORT_STRING: texts, Wire.LONG_STRING: octets, Wire.TABLE: tables,
}  # fmt: skip


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def of_layout(layout: MethodLayout) -> st.SearchStrategy[AnyMethod]:
    return st.tuples(*(FIELDS[wire] for wire in layout.wires)).map(lambda fields: layout.kind(*fields))


methods = st.sampled_from(sorted(LAYOUTS)).flatmap(lambda ids: of_layout(LAYOUTS[ids]))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


basic_properties = st.builds(
    BasicProperties, content_type=maybe(texts), content_encoding=maybe(texts), headers=maybe(tables),
    delivery_mode=maybe(unsigned[8]), priority=maybe(unsigned[8]), correlation_id=maybe(texts), reply_to=maybe(texts),
    expiration=maybe(texts), message_id=maybe(texts), timestamp=maybe(unsigned[64]), type=maybe(texts),
    user_id=maybe(texts), app_id=maybe(texts), cluster_id=maybe(texts),
)  # fmt: skip
