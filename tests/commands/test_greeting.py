"""Which credentials a Connect may bring, and what else clients of the broker's wires say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.test_users import Office

from tandemq.commands import greeting
from tandemq.commands.call import SILENCE
from tandemq.commands.greeting import Connect, Disconnect, Ping
from tandemq.model.errors import BadCredentials, BadPassword, CredentialsRequired

GOOD, BAD = {"authToken": "open sesame"}, {"authToken": "Open sesame"}
ALI, WRONG_ALI = (
    {"authUsername": "ali", "authPassword": "baba"},
    {"authUsername": "ali", "authPassword": "x"},
)
NO_TOKEN, NO_PASSWORD = "Authentication token is required.", "Username and password are required."


def enter(office: Office, headers: dict[str, str]) -> Any:
    said = headers.get
    request = Connect(
        token=said("authToken") or None,
        username=said("authUsername") or None,
        password=said("authPassword") or None,
        req_id="r",
    )
    return greeting.connect(request, office.call(None, False))


@pytest.mark.parametrize("headers", [{}, GOOD, BAD, ALI, WRONG_ALI, {"authUsername": "x"}])
def test_where_nothing_has_to_be_proved_stray_credentials_are_ignored(
    headers: dict[str, str],
) -> None:
    office = Office(empty=True)
    office.accounts.open = True
    assert enter(office, headers) is True
    assert office.desk.caller(1).user is None


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        (GOOD, None),
        ({**GOOD, **WRONG_ALI}, None),
        (BAD, BadCredentials),
        ({}, CredentialsRequired),
        ({"authToken": ""}, CredentialsRequired),
        (ALI, CredentialsRequired),
    ],
)
def test_with_tokens_alone_a_token_is_wanted(headers: dict[str, str], refused: Any) -> None:
    office = Office(empty=True)
    if refused is None:
        assert enter(office, headers) is True
        return
    with pytest.raises(refused) as caught:
        enter(office, headers)
    assert str(caught.value) == (NO_TOKEN if refused is CredentialsRequired else "Invalid token")


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        (ALI, None),
        (GOOD, None),
        ({**ALI, **BAD}, None),
        (WRONG_ALI, BadPassword),
        ({**WRONG_ALI, **GOOD}, BadPassword),
        (BAD, BadCredentials),
        ({}, CredentialsRequired),
        ({"authUsername": "ali"}, CredentialsRequired),
        ({"authPassword": "baba"}, CredentialsRequired),
        ({"authUsername": "ali", "authPassword": ""}, CredentialsRequired),
        ({"authUsername": "ali", **GOOD}, CredentialsRequired),
        ({"AUTHUSERNAME": "ali", "authpassword": "baba"}, CredentialsRequired),
    ],
)
def test_with_users_a_user_or_a_token_is_wanted(headers: dict[str, str], refused: Any) -> None:
    office = Office()
    if refused is None:
        assert enter(office, headers) is True
        return
    with pytest.raises(refused) as caught:
        enter(office, headers)
    assert type(caught.value) is refused
    if refused is CredentialsRequired:
        assert str(caught.value) == NO_PASSWORD


def test_a_ping_is_answered_with_nothing_and_a_leave_not_at_all() -> None:
    office = Office()
    call = office.call(None, False)
    assert greeting.ping(Ping(), call) is None
    assert greeting.disconnect(Disconnect(), call) is SILENCE
    assert office.desk.caller(1).left
