"""Who a client is: the group `anonymous` is of anonymous clients alone."""

import pytest

from fanlight_broker.core.identity import ANONYMOUS, Identity


def test_a_client_without_a_user_is_in_the_group_anonymous_alone():
    assert ANONYMOUS.anonymous
    assert ANONYMOUS.groups == Identity(label="alice", groups=frozenset({"ops"})).groups == {"anonymous"}


def test_a_user_is_in_its_own_groups():
    alice = Identity("alice", verified=True, credential="x", groups=frozenset({"ops"}))
    assert not alice.anonymous
    assert alice.groups == {"ops"}
    assert Identity("bob").groups == frozenset()


def test_no_user_may_be_in_the_group_anonymous():
    with pytest.raises(ValueError, match="anonymous"):
        Identity("alice", groups=frozenset({"ops", "anonymous"}))


def test_an_identity_is_hashable_and_shows_no_credential():
    rules = '[{"effect":"allow","publish":["a"]}]'
    alice = Identity("alice", credential="$argon2id$secret", limits={"connections": 2}, permissions=rules)
    assert alice in {alice}
    assert "secret" not in repr(alice)
