"""Topic Names, Topic Filters and `$share` (4.7, 4.8.2): the specifications' examples, and matchcore's opinion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchcore
from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.topics import SharedFilter, check_topic_filter, check_topic_name
from tests.broker.protocols.mqtt.packets import unhurried

# 4.7.1.2 and 4.7.1.3
VALID = [
    "sport/tennis/player1/#", "sport/#", "#", "sport/tennis/#", "+", "+/tennis/#", "sport/+/player1", "/finance", "+/+",
    "/+", "/", "$SYS/#", "$SYS/monitor/+", "Accounts payable", "$shared/+", "a//b", "é/+",
]  # fmt: skip
INVALID = ["sport/tennis#", "sport/tennis/#/ranking", "sport+", "#/", "##", "++", "a/+b", "a/b+/c", "+#", "/#/"]


@pytest.mark.mqtt("MQTT-4.7.1-2", version=3)
@pytest.mark.mqtt("MQTT-4.7.1-3", version=3)
@pytest.mark.mqtt("MQTT-4.7.1-1", version=5)
@pytest.mark.mqtt("MQTT-4.7.1-2", version=5)
@pytest.mark.parametrize("filter", INVALID)
def test_a_wildcard_stands_alone_in_its_level_and_a_multi_level_one_last(filter: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        check_topic_filter(filter, "filter")
    assert refused.value.reason_code == ReasonCode.TOPIC_FILTER_INVALID
    with pytest.raises(ProtocolError):
        check_topic_filter(f"$share/group/{filter}", "filter")


@pytest.mark.parametrize("filter", VALID)
def test_the_filters_of_the_specification_are_accepted(filter: str) -> None:
    assert check_topic_filter(filter, "filter") is None
    assert check_topic_filter(f"$share/group/{filter}", "filter") == SharedFilter("group", filter)


@pytest.mark.parametrize("filter", VALID)
def test_a_name_has_no_wildcard(filter: str) -> None:
    if "+" in filter or "#" in filter:
        with pytest.raises(ProtocolError) as refused:
            check_topic_name(filter, "name")
        assert refused.value.reason_code == ReasonCode.TOPIC_NAME_INVALID
    else:
        check_topic_name(filter, "name")


@unhurried
@given(st.text(alphabet="ab/+#$ ", max_size=12))
def test_matchcore_takes_the_same_filters(filter: str) -> None:
    def takes() -> bool:
        try:
            matchcore.parse_filter(filter.encode(), "mqtt")
        except matchcore.InvalidFilter:
            return False
        return True

    def accepted() -> bool:
        try:
            check_topic_filter(filter, "filter")
        except ProtocolError:
            return False
        return True

    assert accepted() == takes()


@unhurried
@given(st.text(alphabet="ab/+#$", max_size=10), st.text(alphabet="ab/+#$", max_size=10))
def test_what_is_shared_is_put_together_again(group: str, filter: str) -> None:
    """4.8.2: a ShareName has no slash, so the first one behind `$share/` ends it."""
    text = f"$share/{group}/{filter}"
    try:
        shared = check_topic_filter(text, "filter")
    except ProtocolError:
        return
    assert shared is not None
    assert f"$share/{shared.share_name}/{shared.filter}" == text
    assert shared.share_name
    assert not set(shared.share_name) & set("/+#")


def test_a_long_filter_is_shown_short() -> None:
    with pytest.raises(ProtocolError) as refused:
        check_topic_filter("#" * 60_000, "filter")
    assert len(refused.value.text) < 200
