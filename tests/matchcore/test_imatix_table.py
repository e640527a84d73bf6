"""The table of the paper that the inverted bitmap is from: "High-speed message matching", iMatix, of 2005."""

import pytest

from matchcore import FilterIndex
from matchcore.reference import ReferenceFilterIndex

SUBSCRIPTIONS = ("forex.*", "*.usd", "*.eur", "*")
# As printed, but for one cell. The paper's first table has `forex` match `forex.*` (1001); its second algorithm, where
# a topic that has ended selects the row `null`, has it not match, as AMQP and MQTT do: docs/topics.md.
PRINTED = {
    "forex": "1001",
    "forex.gbp": "1000",
    "forex.eur": "1010",
    "forex.usd": "1100",
    "trade": "0001",
    "trade.usd": "0100",
    "trade.jpy": "0000",
}
OURS = {**PRINTED, "forex": "0001"}


@pytest.mark.parametrize("index", [FilterIndex, ReferenceFilterIndex])
@pytest.mark.parametrize(("topic", "bits"), OURS.items())
@pytest.mark.parametrize("syntax", ["amqp", "mqtt"])
def test_the_table_of_the_paper(
    index: type[FilterIndex] | type[ReferenceFilterIndex], topic: str, bits: str, syntax: str
) -> None:
    def spelled(text: str) -> str:
        return text if syntax == "amqp" else text.replace("*", "+").replace(".", "/")

    filters = index()
    for id, text in enumerate(SUBSCRIPTIONS):
        filters.insert(spelled(text), id, syntax=syntax)
    found = filters.match(spelled(topic), syntax=syntax)
    assert "".join("1" if id in found else "0" for id in range(len(SUBSCRIPTIONS))) == bits
