"""The server's certificate, with real handshakes."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

from tandemq.config import BadSetting, Settings
from tandemq.server.tls import ServerCertificate

KEY_TYPES = [trustme.KeyType.RSA, trustme.KeyType.ECDSA]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


class Files:
    """A certificate and a key under two fixed names."""

    def __init__(self, folder: Path, authority: trustme.CA) -> None:
        self.certificate = folder / "cert.pem"
        self.key = folder / "key.pem"
        self._authority = authority
        self.issue()

    def issue(self, kind: trustme.KeyType = trustme.KeyType.ECDSA) -> None:
        issued = self._authority.issue_cert("localhost", "127.0.0.1", key_type=kind)
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())

    def load(self) -> ServerCertificate:
        return ServerCertificate(str(self.certificate), str(self.key))

    def der(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert(
            self.certificate.read_text().partition("\n-----END")[0]
            + "\n-----END CERTIFICATE-----\n"
        )


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> Files:
    return Files(tmp_path, authority)


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def shake(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = "localhost"
) -> ssl.SSLObject:
    """Both sides of a handshake in memory; returns the client's."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server, server_hostname=name)
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    todo = [theirs, ours]
    for _ in range(10):
        for side in list(todo):
            try:
                side.do_handshake()
                todo.remove(side)
            except ssl.SSLWantReadError:
                pass
    assert not todo
    return theirs


async def test_a_client_shakes_hands_and_talks_over_a_socket(
    files: Files, authority: trustme.CA
) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=files.load().context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting(authority), server_hostname="localhost"
        )
        writer.write(b"ping")
        assert await reader.read() == b"ping"
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()
        await writer.wait_closed()


def test_tls_1_2_is_accepted(files: Files, authority: trustme.CA) -> None:
    client = trusting(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(files.load().context, client).version() == "TLSv1.2"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_tls_1_1_is_refused(files: Files, authority: trustme.CA) -> None:
    client = trusting(authority)
    client.set_ciphers("DEFAULT:@SECLEVEL=0")
    client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    server = files.load()
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        shake(server.context, client)


@pytest.mark.parametrize("first", KEY_TYPES)
@pytest.mark.parametrize("second", KEY_TYPES)
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_after_a_reload_new_connections_see_the_new_certificate_of_any_kind(
    files: Files,
    authority: trustme.CA,
    first: trustme.KeyType,
    second: trustme.KeyType,
    newest: ssl.TLSVersion,
) -> None:
    client = trusting(authority)
    client.maximum_version = newest
    files.issue(first)
    server = files.load()
    listening, old = server.context, files.der()
    assert shake(listening, client).getpeercert(binary_form=True) == old
    files.issue(second)
    assert server.reload()
    assert server.context is listening
    assert files.der() != old
    assert shake(listening, client).getpeercert(binary_form=True) == files.der()


def test_a_client_that_names_no_host_sees_the_new_certificate_as_well(
    files: Files, authority: trustme.CA
) -> None:
    client = trusting(authority)
    client.check_hostname = False
    server = files.load()
    files.issue(trustme.KeyType.RSA)
    assert server.reload()
    assert shake(server.context, client, None).getpeercert(binary_form=True) == files.der()


def test_a_connection_from_before_a_reload_goes_on(files: Files, authority: trustme.CA) -> None:
    server = files.load()
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = trusting(authority).wrap_bio(to_client, to_server, server_hostname="localhost")
    ours = server.context.wrap_bio(to_server, to_client, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        theirs.do_handshake()
    with pytest.raises(ssl.SSLWantReadError):
        ours.do_handshake()
    files.issue()
    assert server.reload()
    theirs.do_handshake()
    ours.do_handshake()
    theirs.write(b"still here")
    assert ours.read() == b"still here"


def test_a_bad_reload_keeps_the_old_certificate_and_says_why(
    files: Files, authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    server, old = files.load(), files.der()
    files.key.write_text("rubbish")
    caplog.set_level(logging.INFO, "tandemq")
    assert not server.reload()
    assert "the old one stays: tls_key" in caplog.text
    assert "is no PEM file" in caplog.text
    peer = shake(server.context, trusting(authority))
    assert peer.getpeercert(binary_form=True) == old
    files.issue()
    assert server.reload()


def test_a_key_of_another_certificate_is_refused(files: Files) -> None:
    certificate = files.certificate.read_bytes()
    files.issue()
    files.certificate.write_bytes(certificate)
    with pytest.raises(BadSetting, match=r"tls_key .*key\.pem does not belong to tls_cert"):
        files.load()


@pytest.mark.parametrize("name", ["certificate", "key"])
def test_a_missing_file_and_one_that_is_not_pem_are_refused_by_name(
    files: Files, name: str
) -> None:
    path: Path = getattr(files, name)
    setting = "tls_cert" if name == "certificate" else "tls_key"
    path.write_bytes(b"\x00\x01\x02")
    with pytest.raises(BadSetting, match=f"{setting} .* is no PEM file"):
        files.load()
    path.unlink()
    with pytest.raises(BadSetting, match=f"{setting} .* cannot be read: No such file"):
        files.load()


def test_a_damaged_certificate_is_refused(files: Files) -> None:
    text = files.certificate.read_text()
    files.certificate.write_text(text.replace(text[100:140], "A" * 40))
    with pytest.raises(BadSetting, match="cannot be used"):
        files.load()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
@pytest.mark.parametrize("form", [["pkcs8", "-topk8"], ["ec", "-aes128"]])
def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_a_password(
    files: Files, form: list[str]
) -> None:
    locked = files.key.with_name("locked.pem")
    command = ["openssl", *form, "-in", str(files.key), "-out", str(locked)]
    subprocess.run([*command, "-passout", "pass:secret"], check=True, capture_output=True)
    files.key.write_bytes(locked.read_bytes())
    with pytest.raises(BadSetting, match="is encrypted: give an unencrypted key"):
        files.load()


def test_settings_without_a_certificate_make_a_plain_server(files: Files) -> None:
    assert ServerCertificate.of(Settings()) is None
    settings = Settings(tls_cert=str(files.certificate), tls_key=str(files.key))
    assert isinstance(ServerCertificate.of(settings), ServerCertificate)
