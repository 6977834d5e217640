"""Storage options: every name that users bring, secrets that never show, and values that are refused."""

import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage.aliases import ALIASES, NAMES, OPTIONS, SECRETS
from boathouse.storage.aws import S3Settings
from boathouse.storage.options import StorageOptions, scrub

TOKEN_URL = "https://login.microsoftonline.com/ten/oauth2/token"


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"AWS_ACCESS_KEY_ID": "k", "aws_secret_access_key": "s"}, {"access_key_id": "k", "secret_access_key": "s"}),
        ({"AWS_ENDPOINT_URL": "http://x", "AWS_ALLOW_HTTP": "true"}, {"endpoint": "http://x", "allow_http": "true"}),
        ({"aws_region": "r", "AWS_SESSION_TOKEN": "t"}, {"region": "r", "session_token": "t"}),
        ({"s3.access-key-id": "k", "s3.endpoint": "e"}, {"access_key_id": "k", "endpoint": "e"}),
        ({"s3.request-timeout": "60.0"}, {"timeout": "60.0"}),
        ({"gcs.oauth2.token": "t"}, {"bearer_token": "t"}),
        ({"adls.account-name": "a", "adls.account-key": "k"}, {"account_name": "a", "account_key": "k"}),
        ({"spark.hadoop.fs.s3a.access.key": "k"}, {"access_key_id": "k"}),
        (
            {"fs.s3a.endpoint": "e", "fs.s3a.path.style.access": "true"},
            {"endpoint": "e", "virtual_hosted_style": "false"},
        ),
        ({"fs.s3a.connection.ssl.enabled": "false"}, {"allow_http": "true"}),
        ({"fs.s3a.connection.timeout": "5000"}, {"timeout": "5000ms"}),
        ({"fs.s3a.aws.credentials.provider": "org.x.AnonymousAWSCredentialsProvider"}, {"anonymous": "true"}),
        ({"fs.s3a.aws.credentials.provider": "org.x.SimpleAWSCredentialsProvider"}, {}),
        ({"fs.azure.account.key.acc.dfs.core.windows.net": "k"}, {"account_name": "acc", "account_key": "k"}),
        (
            {"spark.hadoop.fs.azure.account.key.acc.blob.core.windows.net": "k"},
            {"account_name": "acc", "account_key": "k"},
        ),
        ({"fs.azure.sas.cont.acc.blob.core.windows.net": "k"}, {"account_name": "acc", "sas_token": "k"}),
        ({"fs.azure.sas.fixed.token.acc.dfs.core.windows.net": "k"}, {"account_name": "acc", "sas_token": "k"}),
        ({"fs.azure.account.auth.type.acc.dfs.core.windows.net": "OAuth"}, {"account_name": "acc"}),
        ({"fs.azure.account.oauth2.client.endpoint": TOKEN_URL}, {"tenant_id": "ten"}),
        (
            {"fs.azure.account.oauth2.client.endpoint.acc.dfs.core.windows.net": TOKEN_URL},
            {"account_name": "acc", "tenant_id": "ten"},
        ),
        (
            {"adls.connection-string": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=k==;EndpointSuffix=x"},
            {"account_name": "a", "account_key": "k=="},
        ),
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {}),
        ({"allow_http": True, "region": None, "max_retries": 3}, {"allow_http": "true", "max_retries": "3"}),
        ({"region": "r", "AWS_REGION": "r"}, {"region": "r"}),
        (
            {"key": "k", "secret": "s", "token": "t", "endpoint_url": "e"},
            {"access_key_id": "k", "secret_access_key": "s", "session_token": "t", "endpoint": "e"},
        ),
    ],
)
def test_names_of_others(given: dict[str, object], ours: dict[str, str]) -> None:
    assert dict(StorageOptions.of(given).items) == ours


def test_every_alias_leads_to_an_option() -> None:
    assert set(ALIASES.values()) <= set(OPTIONS) and set(OPTIONS) >= SECRETS


@pytest.mark.parametrize("name", sorted(n for n in {*OPTIONS, *ALIASES} if ALIASES.get(n, n) in SECRETS))
def test_no_alias_of_a_secret_shows(name: str) -> None:
    for spelled in (name, name.upper(), "spark.hadoop." + name):
        options = StorageOptions.of({spelled: "pa55/wo+rd"})
        assert "pa55" not in repr(options) and "pa55" not in str(options) and "***" in repr(options)
        assert options.secrets() == ["pa55/wo+rd"]
        ours = ALIASES.get(name, name)
        with pytest.raises(InvalidArgumentError) as caught:
            StorageOptions.of({spelled: "pa55/wo+rd", ours.title() if spelled == ours else ours: "0therpa55"})
        assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("acess_key_id", "access_key_id"),
        ("AWS_SECRET_ACESS_KEY", "aws_secret_access_key"),
        ("s3.acces-key-id", "s3.access-key-id"),
        ("fs.s3a.acess.key", "fs.s3a.access.key"),
        ("regoin", "region"),
        ("zzzzzz", "did you mean"),
    ],
)
def test_unknown_names_get_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Unknown storage option") as caught:
        StorageOptions.of({name: "theSecret"})
    assert near in str(caught.value).lower() and "theSecret" not in str(caught.value)
    assert near in NAMES or near == "did you mean"


@pytest.mark.parametrize(
    "given",
    [
        {"region": "a", "aws_region": "b"},
        {"allow_http": "perhaps"},
        {"timeout": "soon"},
        {"max_retries": "-1"},
        {"conditional_put": "dynamo:x"},
        {"fs.azure.account.oauth2.client.endpoint": "nowhere"},
    ],
)
def test_values_that_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError):
        StorageOptions.of(given)


@pytest.mark.parametrize("name", ["AWS_S3_LOCKING_PROVIDER", "s3.role-arn"])
def test_what_is_known_and_not_offered(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=name):
        StorageOptions.of({name: "x"})


def test_values() -> None:
    options = StorageOptions.of({"timeout": "1500ms", "connect_timeout": 2, "anonymous": "1", "max_retries": "4"})
    assert (options.seconds("timeout"), options.seconds("connect_timeout")) == (1.5, 2.0)
    assert (options.flag("anonymous"), options.flag("allow_http"), options.number("max_retries")) == (True, None, 4)
    assert pickle.loads(pickle.dumps(options)) == options and hash(options) == hash(StorageOptions.of(options))
    with pytest.raises(FrozenInstanceError):
        options.items = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        "GET https://h/p?sv=1&sig=SeCrEt%2F&x=1 failed",
        "x-amz-signature=SeCrEt",
        "https://h/?X-Amz-Security-Token=SeCrEt&y=2",
        "Authorization: Bearer SeCrEt.SeCrEt",
        "authorization: AWS4-HMAC-SHA256 Credential=SeCrEt/2020, Signature=SeCrEt",
        "http://user:SeCrEt@proxy:8080/ refused",
    ],
)
def test_what_looks_like_a_credential_is_scrubbed(text: str) -> None:
    assert "SeCrEt" not in scrub(text, [])


def test_scrub_knows_percent_encoding_and_leaves_addresses_alone() -> None:
    assert scrub("a/b+c a%2Fb%2Bc a/b%2Bc", ["a/b+c"]) == "*** *** ***"
    assert scrub("abfss://cont@acc.dfs.core.windows.net/k gone", []) == "abfss://cont@acc.dfs.core.windows.net/k gone"


# -- S3 settings from environment and profiles ------------------------------------------------------------------------


@pytest.fixture
def aws_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = dk\naws_secret_access_key = ds\n"
        "[work]\naws_access_key_id = wk\naws_secret_access_key = w%s\naws_session_token = wt\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = r0\n[profile work]\nregion = r1\n[profile sso]\nsso_session = x\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path


def _keys(**options: str) -> tuple[str | None, ...]:
    found = S3Settings.resolve(StorageOptions.of(options))
    assert (found.secret_access_key or "none") not in repr(found)
    return found.access_key_id, found.secret_access_key, found.session_token, found.region


def test_profiles(aws_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _keys() == ("dk", "ds", None, "r0")
    assert _keys(profile="work") == ("wk", "w%s", "wt", "r1")
    assert _keys(profile="work", region="mine") == ("wk", "w%s", "wt", "mine")
    assert _keys(access_key_id="a", secret_access_key="b") == ("a", "b", None, "r0")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert _keys() == ("wk", "w%s", "wt", "r1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from the environment, read by the client")
    assert _keys() == (None, None, None, None)
    assert _keys(anonymous="true")[0] is None


def test_profiles_that_cannot_be_used(aws_home: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        _keys(profile="nobody")
    with pytest.raises(UnsupportedFeatureError, match="sso_session"):
        _keys(profile="sso")
    with pytest.raises(InvalidArgumentError, match="together"):
        _keys(access_key_id="a")


def test_endpoints(aws_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoint(**options: str) -> tuple[str | None, bool]:
        found = S3Settings.resolve(StorageOptions.of(options))
        return found.endpoint, found.allow_http

    assert endpoint() == (None, False)
    assert endpoint(endpoint="http://h:9000/") == ("http://h:9000", True)
    assert endpoint(endpoint="h:9000") == ("https://h:9000", False)
    assert endpoint(endpoint="h:9000", allow_http="true") == ("http://h:9000", True)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://e")
    assert endpoint() == ("https://e", False)


def test_the_documentation_names_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs/storage.md").read_text(encoding="utf-8")
    for name, meaning in OPTIONS.items():
        assert f"| `{name}` | {meaning} |" in page
