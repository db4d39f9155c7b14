"""Keys that sign: in files that only their owner can read, never replaced, and in no message."""

from __future__ import annotations

import copy
import pickle
import stat
import sys
from pathlib import Path

import pytest

from pcor.errors import ParameterError, WriteError
from pcor.support.ed25519 import PublicKey, SigningKey
from tests.helpers.openssl import accepts, needs_openssl, openssl


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate()


def test_a_key_signs_and_its_public_half_checks(key: SigningKey) -> None:
    value = key.sign(b"said")
    assert key.public.fits(value, b"said")
    assert not key.public.fits(value, b"said!")
    assert not SigningKey.generate().public.fits(value, b"said")
    assert not key.public.fits("00", b"said")


def test_the_same_message_has_the_same_signature(key: SigningKey) -> None:
    assert key.sign(b"said") == key.sign(b"said")


def test_a_signature_is_the_one_of_the_standard(tmp_path: Path) -> None:
    """RFC 8032, section 7.1, test 2; the key in the frame that PKCS 8 puts around it."""
    from base64 import b64encode

    seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    frame = b64encode(bytes.fromhex(f"302e020100300506032b657004220420{seed}")).decode()
    path = tmp_path / "key"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{frame}\n-----END PRIVATE KEY-----\n")
    path.chmod(0o600)
    key = SigningKey.load(path)
    assert str(key.public) == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72") == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_keys_come_back_from_their_files_and_others_cannot_read_the_private_one(
    key: SigningKey, tmp_path: Path
) -> None:
    key.save(tmp_path / "key")
    key.public.save(tmp_path / "key.pub")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert SigningKey.load(tmp_path / "key").public == key.public
    assert PublicKey.load(tmp_path / "key.pub") == key.public
    assert {path.name for path in tmp_path.iterdir()} == {"key", "key.pub"}


def test_a_key_is_never_replaced(key: SigningKey, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("mine")
    for half in (key, key.public):
        with pytest.raises(WriteError, match="is there already, and a key is never replaced"):
            half.save(path)
    assert path.read_text() == "mine"
    with pytest.raises(WriteError, match="the private key cannot be written to"):
        key.save(tmp_path / "nowhere" / "key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_private_key_that_others_can_read_is_refused(
    key: SigningKey, tmp_path: Path, mode: int
) -> None:
    key.save(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(ParameterError, match=r"others can read the private key .* chmod 600"):
        SigningKey.load(tmp_path / "key")


def test_a_file_without_a_private_key_is_called_that_whoever_can_read_it(
    key: SigningKey, tmp_path: Path
) -> None:
    key.public.save(tmp_path / "key.pub")
    with pytest.raises(ParameterError, match="holds a public key, and no private one"):
        SigningKey.load(tmp_path / "key.pub")
    (tmp_path / "table.csv").write_text("job,pay\n")
    with pytest.raises(ParameterError, match="holds no private Ed25519 key"):
        SigningKey.load(tmp_path / "table.csv")


def test_what_is_no_key_is_refused_in_a_sentence(key: SigningKey, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n")
    path.chmod(0o600)
    with pytest.raises(ParameterError, match="holds no private Ed25519 key") as refused:
        SigningKey.load(path)
    assert "secret" not in str(refused.value)
    with pytest.raises(ParameterError, match="holds a private key; signatures are checked with"):
        PublicKey.load(path)
    path.write_text("nothing")
    with pytest.raises(ParameterError, match="holds no public Ed25519 key"):
        PublicKey.load(path)
    with pytest.raises(ParameterError, match="cannot be read: No such file"):
        PublicKey.load(tmp_path / "none")
    for wrong in ("", "12", key.public.key.upper() + "0", 12):
        with pytest.raises(ParameterError, match="64 hexadecimal digits"):
            PublicKey(wrong)  # type: ignore[arg-type]


def test_a_private_key_is_shown_nowhere_and_copied_nowhere(key: SigningKey) -> None:
    private = key._key.private_bytes_raw()
    shown = f"{key!r} {key} {vars(key)}"
    assert private.hex() not in shown
    assert repr(private)[2:-1] not in shown
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="is not copied"):
            copied(key)


@pytest.mark.parametrize("package", ["cryptography", "rfc8785"])
def test_without_the_packages_a_sentence_says_what_to_install(
    key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    key.save(tmp_path / "key")
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ParameterError, match=rf"need {package}.*pip install 'pcor\[sign\]'"):
        SigningKey.load(tmp_path / "key")


@needs_openssl
def test_openssl_makes_and_reads_our_keys(key: SigningKey, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    assert openssl("genpkey", "-algorithm", "ed25519", "-out", theirs).returncode == 0
    theirs.chmod(0o600)
    public = tmp_path / "theirs.pub"
    assert openssl("pkey", "-in", theirs, "-pubout", "-out", public).returncode == 0
    assert SigningKey.load(theirs).public == PublicKey.load(public)
    key.public.save(tmp_path / "ours.pub")
    assert accepts(tmp_path / "ours.pub", key.sign(b"said"), b"said")
    assert not accepts(tmp_path / "ours.pub", key.sign(b"said"), b"said!")


@needs_openssl
def test_keys_of_another_kind_or_with_a_passphrase_are_refused(tmp_path: Path) -> None:
    for name, words in {
        "other": ("-algorithm", "x25519"),
        "locked": ("-algorithm", "ed25519", "-aes256", "-pass", "pass:one"),
    }.items():
        assert openssl("genpkey", *words, "-out", tmp_path / name).returncode == 0
        (tmp_path / name).chmod(0o600)
    with pytest.raises(ParameterError, match="holds no private Ed25519 key"):
        SigningKey.load(tmp_path / "other")
    with pytest.raises(ParameterError, match="has a passphrase"):
        SigningKey.load(tmp_path / "locked")
