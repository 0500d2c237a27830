"""Names of secrets with any word before the last one, against the redactor: what a secret is for says nothing of whether it is one."""

from collections.abc import Callable
from itertools import product

import pytest

from playhead.tape.exchange import Request
from playhead.tape.redaction.credential_fields import kind_of_header
from playhead.tape.redaction.finding.secrets_by_name import read_name
from playhead.tape.redaction.redactor import Redactor

_WORDS = """
    access account action activity adobe admin agent airflow airtable akamai alert algolia amazon analytics android anthropic apache apm app
    apple application archive artifactory asana assistant atlassian audit auth aws azure backend backup bamboo basic batch billing bitbucket
    blob bluesky bot box branch broker browser bucket build buildkite cache calendar cart cassandra celery cert chat checkout chef circleci
    cisco claude clickhouse client cloud cloudflare cluster codecov cohere company confluence connect consul contact container content
    contentful control count couchbase counter crm cron cursor customer cypress daemon dashboard data database datadog db debug deepseek default deploy
    desktop dev device devops digitalocean directory discord discount django dns docker document domain dropbox drone dynamo editor elastic
    email encryption engine enterprise env event exchange export external facebook fastly feed figma file firebase firewall fleet flow folder
    form frontend ftp function gateway gcp gemini gerrit ghost git gitea github gitlab gmail google grafana graph groq group guest hash
    hashicorp health helm heroku home hook host hub hubspot idp image imap import index influx ingest instagram internal invoice ios jenkins
    jira job kafka keycloak kibana kubernetes label lambda laravel launchdarkly ldap library license limit linear linkedin linux listener
    local log login loki magento mail mailchimp mailgun main maintenance management manager mapbox market master mastodon mattermost max
    member meeting memcached merchant message messenger meta metrics microsoft min mini minio mistral mixpanel mobile model monitor mongo monkey
    mqtt mysql nagios neo4j netlify network newrelic news nextauth nextcloud nginx nomad notification notion npm num oauth object office okta
    openai openrouter opsgenie oracle order origin owner page pagerduty partner password path payment paypal peer permission persistent pinecone
    pipeline plaid plugin portal post postgres postmark prefect primary printer private prod product profile project prometheus provider proxy
    public publisher pulsar puppet push qa query queue rabbitmq redis region registry relay release remote replica replicate repo report
    request reset resource rest robot role root router salesforce sandbox saml sap scheduler script search security segment sendgrid
    sentry server service session shared shell shop shopify signing site slack smtp snowflake social sonar source spark splunk square sql
    ssh sso staging staff stats storage store stripe student subscriber supabase superuser support swagger sync system tableau tailscale team
    telegram tenant terraform test third tiktok total travis trello twilio twitter upload user vault vendor vercel vpn web webhook wechat
    whatsapp windows wordpress worker workspace youtube zendesk zoom
"""
QUALIFIERS = _WORDS.split()
ENDS = ("password", "secret", "token", "api_key", "access_key", "secret_key", "private_key")
KEPT = {
    "cursor_token": "where a list goes on",
    "page_token": "where a list goes on",
    "sync_token": "what a calendar has seen",
    "client_token": "the name of a request that may be sent again, as AWS has it",
    "device_token": "which phone gets a message",
    "payment_token": "which payment",
}
DOUBTFUL = {"client_token": "of Vault and others, where its value is a key"}
SPELLINGS: dict[str, Callable[[list[str]], str]] = {
    "snake": lambda words: "_".join(words),
    "capitals": lambda words: "_".join(words).upper(),
    "kebab": lambda words: "-".join(words),
    "camel": lambda words: words[0] + "".join(word.capitalize() for word in words[1:]),
    "joined": lambda words: "".join(words),
}
VALUE = "v7Qm2pZ9xAb3LrfW0yC1kT5d"


def test_there_are_enough_words() -> None:
    """No word twice."""
    assert len(QUALIFIERS) == len(set(QUALIFIERS)) >= 300


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_word_before_the_name_of_a_secret_changes_nothing(spelling: str) -> None:
    """Each product but those that are listed with a reason."""
    spell = SPELLINGS[spelling]
    missed = {
        f"{word}_{end}"
        for word, end in product(QUALIFIERS, ENDS)
        if read_name(spell([word, *end.split("_")]).encode()) is None
    }
    assert missed == set(KEPT) - set(DOUBTFUL if spelling in ("snake", "capitals") else ())


@pytest.mark.parametrize("end", ["token", "secret", "password", "api-key"])
def test_a_word_before_the_name_of_a_header_changes_nothing(end: str) -> None:
    """Tokens of pages are listed."""
    missed = {word for word in QUALIFIERS if kind_of_header(f"x-{word}-{end}") is None}
    assert missed == ({"cursor", "page", "sync"} if end == "token" else set())


@pytest.mark.parametrize(
    "name",
    [
        *("next_page_token", "nextPageToken", "NextToken", "nextpagetoken", "page_token", "$skiptoken"),
        *("continuation-token", "syncToken", "max_tokens", "x-ratelimit-reset-tokens", "token_count", "tokenCount", "token_id"),
        *("primary_key", "partitionKey", "public_key", "idempotency_key", "next_cursor", "monkey"),
        *("device_token", "ClientToken", "LockToken", "update_token", "keyboard", "passport", "bypass"),
    ],
)  # fmt: skip
def test_a_name_of_something_else_stays(name: str) -> None:
    """A number, the place in a list, the key of a row."""
    text = f'{{"{name}": "{VALUE}"}}'.encode()
    assert Redactor(b"k" * 32).text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("page_access_token", "service_account_token", "next_secret", "adminPassword", "GEMINI_API_KEY"),
        *("NEXTAUTH_SECRET", "PAGERDUTY_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY", "device_password"),
        *("password1", "new_password2", "password_confirmation", "passwordConfirmation", "AZURE_STORAGE_KEY"),
        *("MINIO_ROOT_PASSWORD", "CURSOR_API_KEY", "OP_SERVICE_ACCOUNT_TOKEN", "cache_password"),
        *("psk", "wpa_psk", "WIFI_PSK", "preSharedKey", "client_token", "VAULT_CLIENT_TOKEN", "storage_key", "STORAGE_KEY"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ['{{"a": 1, "{}": "{}"}}', "{}={}", "x=1\nexport {}={}\n", "{}: {}"]
)
def test_a_secret_is_replaced_under_its_whole_name(name: str, form: str) -> None:
    """In members of JSON, lines and fields."""
    assert VALUE.encode() not in Redactor(b"k" * 32).text(form.format(name, VALUE).encode())


@pytest.mark.parametrize(
    "text",
    [
        *('{"client_token": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}', "client_token=terraform-20261012093015273"),
        *('{"storage_key": "uploads/2026/Kq81zPd0tY3xMv5nRb7c"}', '{"storage_key": "v7Qm2pZ9xAb3LrfW0yC1kT5d.png"}'),
        *('{"storage_key": "xtapjjcjiudrlk3tmwyjgpuobabd"}', "modulation_qpsk = v7Qm2pZ9xAb3LrfW0yC1kT5d"),
        *('{"password": "op://Private/Db/one-time9K"}', "DB_PASSWORD=op://app-prod/db/password1X", "export API_TOKEN=op://dev/aws7/key9Q"),
        *('{"password": "correct\\u0020horse"}', '{"password": "gl\\u00fcckwunsch"}', '{"db_password": "passwortgl\\u00fcck"}'),
    ],
)  # fmt: skip
def test_a_value_that_is_none_stays(text: str) -> None:
    """Under names that say secret as often as not, references to a vault, and words with escapes."""
    assert Redactor(b"k" * 32).text(text.encode()).decode() == text


def test_an_escape_in_a_secret_is_the_character_that_it_means() -> None:
    """`\\u0026` is `&`, as Go writes it: the value is judged and replaced as a whole."""
    text = f'{{"api_key": "{VALUE}\\u0026x\\u003d", "note": "v\\u00e9"}}'
    kept = Redactor(b"k" * 32).text(text.encode()).decode()
    assert VALUE not in kept
    assert len(kept) == len(text)
    assert kept.endswith(', "note": "v\\u00e9"}')


@pytest.mark.parametrize(
    "name", ["X-Account-Token", "X-Request-Password", "X-Account-Api-Key", "X-Page-Secret"]
)
def test_a_header_field_with_a_secret_is_replaced(name: str) -> None:
    """Whatever its last word is about."""
    fields = ((name.encode(), VALUE.encode()),)
    asked = Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", fields, b"")
    assert VALUE.encode() not in Redactor(b"k" * 32).request(asked)[0].headers[0][1]


@pytest.mark.parametrize(
    "name",
    ["X-Tenant-Key", "x-ingest-key", "Tyk-Key", "x_service_key", "x-login-passwd", "X-Store-Pass", "X-Vault-Passphrase"],
)  # fmt: skip
def test_a_value_like_a_secret_in_a_field_named_like_one_is_replaced(name: str) -> None:
    """It counts by its value, since not every such field is a credential's; the run knows it from then on."""
    redactor = Redactor(b"k" * 32)
    asked = Request("POST", "https", "a.test", 443, "/", "HTTP/1.1", ((name.encode(), VALUE.encode()),), f"it is {VALUE}".encode())  # fmt: skip
    kept, found = redactor.request(asked)
    assert VALUE.encode() not in kept.headers[0][1] + kept.body
    assert f"request.header.{name.lower()}" in [one.place for one in found]
    assert {one.part for one in kept.secrets} == {"body", f"header {name.lower()}"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, VALUE) for name in ("Idempotency-Key", "X-Cache-Key", "Sec-WebSocket-Key", "X-Public-Key", "Surrogate-Keyring", "X-Monkey")),
        *(("X-Tenant-Key", value) for value in ("customers/2026", "primary", "2026-11-26", "order-of-the-day", "v1.2.3")),
    ],
)  # fmt: skip
def test_what_such_a_field_has_else_stays(name: str, value: str) -> None:
    """A harmless name, or a value that looks like no secret."""
    asked = Request("POST", "https", "a.test", 443, "/", "HTTP/1.1", ((name.encode(), value.encode()),))  # fmt: skip
    assert Redactor(b"k" * 32).request(asked)[0].headers == asked.headers


def test_a_key_of_appwrite_is_in_a_place_of_its_own() -> None:
    """As its pages name it."""
    assert kind_of_header("x-appwrite-key") == "key"
