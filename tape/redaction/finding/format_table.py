"""The table of formats: what a key or token of a known issuer begins with, what follows, and the test that it passes.

`docs/secret-formats.md` shows the same rows; a test compares both. Classes of characters are single capitals:

    A  letters and digits              L  small letters and digits      S  base 32
    B  those of A, `_` and `-`         U  capitals and digits           W  those of A and `_`
    C  those of A, `+` and `/`         X  hexadecimal in both cases     D  digits
    H  hexadecimal, small              E  base 32 of age keys

Source: the providers' own pages on their keys; the public rules of gitleaks, detect-secrets and trufflehog, and of Microsoft's
security-utilities (keys of Azure); RFC 7515 and 7516 (JWT, JWE).
"""

from typing import NamedTuple

CLASSES = {
    "A": "[A-Za-z0-9]",
    "B": "[A-Za-z0-9_-]",
    "C": "[A-Za-z0-9+/]",
    "D": "[0-9]",
    "E": "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]",
    "H": "[0-9a-f]",
    "L": "[a-z0-9]",
    "S": "[A-Z2-7]",
    "U": "[A-Z0-9]",
    "W": "[A-Za-z0-9_]",
    "X": "[0-9a-fA-F]",
}
_TOKEN = (
    "eyJhbGci eyJ0eXAi eyJraWQi eyJlbmMi eyJjdHki eyJqa3Ui eyJqd2si eyJ4NXQi eyJ4NWMi eyJ6aXAi eyJlcGsi eyJjcml0 eyJhcHUi "
    "eyAiYWxn eyAidHlw eyAia2lk eyAiZW5j ewogICJh ewogICJ0 ewogICJr ew0KICAi"
)
"""How base64 of the header of a JSON Web Token begins: with one of its members."""
_UUID = "H{8}-H{4}-H{4}-H{4}-H{12}"


class Format(NamedTuple):
    """One row of the table."""

    name: str
    begins: tuple[str, ...]
    """Prefixes; none where the secret is known by a mark in its middle."""
    then: str
    """The rest, with classes for characters."""
    test: str
    """Name of a test in `..looks_like_secret.TESTS`; it is asked of what follows the prefix."""
    head: str = ""
    """What is searched for, where it is not a prefix and the first characters behind it: one or several, of the same width."""
    back: tuple[int, ...] = (0,)
    """Characters of the secret before the head: each number is tried."""
    family: str = ""
    """Older name, under which `redact_off` may name the row too."""
    near: tuple[str, ...] = ()
    """Words of which one has to be shortly before it, where ids have the same form."""
    named: bool = False
    """Whether objects of storage and files are named so, too; then it is no secret."""


def _row(name: str, begins: str, then: str, test: str = "random", family: str = "") -> Format:
    return Format(name, tuple(begins.split()), then, test, family=family)


def _middle(
    name: str, then: str, head: str, *back: int, test: str = "random", family: str = ""
) -> Format:
    return Format(name, (), then, test, head, back, family)


FORMATS: tuple[Format, ...] = (
    # Models
    _row("openai-project", "sk-proj- sk-svcacct- sk-admin- sk-None-", "B{40,180}", family="sk"),
    _row("openai-classic", "sk-", "A{48}", family="sk"),
    _row(
        "anthropic",
        "sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-sid01-",
        "B{80,120}",
        family="sk",
    ),
    _row("openrouter", "sk-or-v1-", "H{64}", family="sk"),
    _row("deepseek-like", "sk-", "H{32}", "hex", family="sk"),
    _row("langsmith", "lsv2_pt_ lsv2_sk_", "H{32}_H{10}"),
    _row("langfuse", "sk-lf- pk-lf-", _UUID, family="sk"),
    _row("sk", "sk-", "B{20,200}", "strong"),
    _row("groq", "gsk_", "A{52}"),
    _row("xai", "xai-", "A{80}"),
    _row("perplexity", "pplx-", "A{48}"),
    _row("huggingface", "hf_ api_org_", "A{34,37}"),
    _row("replicate", "r8_", "A{37}"),
    _row("tavily", "tvly-dev- tvly-prod- tvly-", "A{32}"),
    _row("fireworks", "fw_", "A{22,24}"),
    _row("cerebras", "csk-", "L{48}"),
    _row("nvidia", "nvapi-", "B{64}"),
    _row("pinecone", "pcsk_", "A{5,6}_A{60,70}"),
    _row("voyage", "pa-", "B{43}"),
    _row("together", "tgp_v1_", "B{43}"),
    _row("firecrawl", "fc-", "H{32}", "hex"),
    _row("jina", "jina_", "B{60}"),
    _row("elevenlabs", "sk_", "H{48}", "hex"),
    # Clouds
    _row("aws-access-key", "AKIA ASIA ABIA ACCA", "S{16}", family="aws"),
    _row(
        "aws-session-token",
        "IQoJb3JpZ2luX2Vj FwoGZXIvYXdz",
        r"(?:C{1}|%2[BFbf]){100,2000}(?:=|%3[Dd]){0,2}",
        family="aws",
    ),
    _row("aws-bedrock-long", "ABSK", "C{109,269}={0,2}", family="aws"),
    _row("aws-bedrock-short", "bedrock-api-key-", "C{60,2000}={0,2}", family="aws"),
    _row("google-api", "AIza", "B{35}", family="google"),
    _row("google-oauth-token", "ya29.", "B{40,1000}", family="google-oauth"),
    _row("google-refresh", "1//0", "B{40,500}", family="google-oauth"),
    _row("google-code", "4/0A", "B{40,200}", family="google-oauth"),
    _row("google-client-secret", "GOCSPX-", "B{28}", family="google-oauth"),
    _middle(
        "azure-client-secret", r"A{3}D{1}Q~[A-Za-z0-9_~.-]{31,34}", r"D{1}Q~[A-Za-z0-9_~.-]{31}", 3
    ),
    _row("azure-storage", "AccountKey= SharedAccessKey=", r"C{43,86}={1,2}"),
    _middle("azure-devops", "A{76}AZDOA{4}", "AZDOA{4}", 76),
    _row("azure-sas", "sig=", r"(?:A{1}|%2[BFbf]|[+/_-]){43,64}(?:%3[Dd]|=)?"),
    _row("azure-refresh", "0.A 1.A", "B{1,3}AAB{200,2000}"),
    _row("alibaba", "LTAI", "A{20}"),
    _row("tencent", "AKID", "A{32}"),
    _row("yandex-api", "AQVN", "B{35,38}"),
    _row("yandex-static", "YCAJE YCMAJ", "B{20,36}"),
    _row("digitalocean", "dop_v1_ doo_v1_ dor_v1_", "H{64}", "hex"),
    _row("vault", "hvs. hvb. hvr.", "B{24,300}"),
    _middle("terraform-cloud", r"A{14}\.atlasv1\.B{60,70}", r"\.atlasv1\.B{32}", 14),
    _row("cloudflare-origin", "v1.0-", "H{24}-H{146}", "hex"),
    _row("heroku", "HRKU-AA HRKU-", "B{36,60}"),
    _row("flyio", "fo1_", "B{43}"),
    _row("flyio-macaroon", "fm1r_ fm1a_ fm2_", "C{100,1000}={0,3}"),
    _row("render", "rnd_", "A{32}"),
    _row("vercel", "vercel_blob_rw_ vcp_ vci_ vca_", "W{24,60}"),
    _row("netlify", "nfp_", "A{36}"),
    _row("supabase", "sbp_", "H{40}", "hex"),
    _row("supabase-secret", "sb_secret_", "B{31,100}"),
    _row("neon", "napi_", "L{60,70}"),
    _row("planetscale", "pscale_tkn_ pscale_oauth_ pscale_pw_", "[A-Za-z0-9_.=-]{32,64}"),
    _row("databricks", "dapi", "H{32}(?:-D{1})?", "hex"),
    _row("confluent", "cflt", "C{56,100}"),
    _row("pulumi", "pul-", "H{40}", "hex"),
    _row("doppler", "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit.", "A{40,44}"),
    _middle(
        "doppler-service",
        r"dp\.st\.(?:[a-z0-9_-]{2,35}\.)?A{40,44}",
        r"dp\.st\.[A-Za-z0-9_.-]{32}",
        0,
    ),
    _row("infisical", "st.", _UUID + r"\.H{32}", "hex"),
    _row("dynatrace", "dt0c01. dt0s01.", r"S{24}\.S{64}"),
    _row("tailscale", "tskey-auth- tskey-api- tskey-client-", "A{8,20}-A{20,40}"),
    _row("1password", "ops_eyJ", "C{200,2000}={0,3}", "none"),
    _row("age", "AGE-SECRET-KEY-1", "E{58}"),
    # Code
    _row("github", "ghp_ gho_ ghu_ ghs_ ghr_", "A{36}", "checksum", family="github"),
    _row("github-fine", "github_pat_", "A{22}_A{59}", family="github-pat"),
    _row(
        "gitlab",
        "glpat- gldt- glrt- glft- glsoat- glffct- glimt- glagent- gloas- glptt- glcbt-",
        "[A-Za-z0-9_.-]{20,300}",
    ),
    _row("gitlab-runner", "GR1348941", "B{20}", family="gitlab"),
    _row("bitbucket-app", "ATBB", "A{32}"),
    _row("atlassian", "ATATT3 ATCTT3", "[A-Za-z0-9_=-]{150,220}"),
    _row("npm", "npm_", "A{36}", "checksum"),
    _row("pypi", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw", "B{50,500}"),
    _row("rubygems", "rubygems_", "H{48}", "hex"),
    _row("cargo", "cio", "A{32}"),
    _row("nuget", "oy2", "L{43}"),
    _row("clojars", "CLOJARS_", "L{60}"),
    _row("dockerhub", "dckr_pat_ dckr_oat_", "B{27,32}"),
    _row("artifactory", "AKCp", "A{69}"),
    _row("artifactory-ref", "cmVmdGtu", "A{56}"),
    _row("circleci", "CCIPAT_ CCIPRJ_", "A{22}_H{40}"),
    _row("buildkite", "bkua_ bkaj_ bkpt_", "H{40}", "hex"),
    _row("sonar", "squ_ sqp_ sqa_", "H{40}", "hex"),
    _row("sourcegraph", "sgp_", "X{40}", "hex"),
    _row("sourcegraph-local", "sgp_local_", "X{40}", "hex"),
    _row("sourcegraph-instance", "sgp_", "X{16}_X{40}", "hex"),
    _row("openshift", "sha256~", "B{43}"),
    _row("octopus", "API-", "U{26}"),
    _row("prefect", "pnu_ pnb_", "A{36}"),
    _row("postman", "PMAK-", "H{24}-H{34}", "hex"),
    _row("readme", "rdme_", "L{70}"),
    _row("linear", "lin_api_ lin_oauth_", "A{40}"),
    _row("notion", "ntn_ secret_", "A{43,46}"),
    _row("airtable", "pat", r"A{14}\.H{64}", "hex"),
    _row("figma", "figd_ figdr_ figo_ figp_", "B{38,80}"),
    _middle("asana", r"[12]/D{16}(?:/D{16})?:H{32}", "[12]/D{16}[:/]", 0),
    # Services
    _row("stripe", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_", "A{24,99}"),
    _row("webhook-secret", "whsec_", "[A-Za-z0-9+/=_-]{32,100}", family="webhook"),
    _row("square", "sq0atp- sq0csp- EAAAE", "B{22,60}"),
    _row("braintree", "access_token$production$ access_token$sandbox$", r"L{16}\$H{32}", "hex"),
    _row("plaid", "access-sandbox- access-production- access-development-", _UUID, "hex"),
    _row("flutterwave", "FLWSECK_TEST- FLWSECK-", "A{32}-X"),
    _row("razorpay", "rzp_live_ rzp_test_", "A{14}"),
    _row("shopify", "shpat_ shpss_ shpca_ shppa_", "X{32}", "hex"),
    _row("easypost", "EZAK EZTK", "A{54}"),
    _row("shippo", "shippo_live_ shippo_test_", "X{40}", "hex"),
    _row("duffel", "duffel_test_ duffel_live_", "B{43}"),
    _row(
        "slack",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd-",
        "D{8,14}-[0-9A-Za-z-]{16,200}",
    ),
    _row("slack-config", "xoxe.xoxp-1- xoxe.xoxb-1- xoxe-1-", "A{100,300}", family="slack"),
    _row("slack-app", "xapp-1-", "U{9,12}-D{10,14}-H{32,128}", family="slack"),
    _row("slack-hook", "hooks.slack.com/services/", "TU{8,12}/BU{8,12}/A{24}"),
    _middle("discord-bot", r"[MNO]B{23,25}\.B{6}\.B{27,38}", r"\.B{6}\.B{27}", 26, 25, 24),
    _row("discord-hook", "/api/webhooks/", "D{17,20}/B{60,70}"),
    _middle("telegram", r"D{8,10}:AAB{33}", ":AAB{32}", 10, 9, 8),
    _row(
        "teams-hook",
        ".webhook.office.com/webhookb2/",
        _UUID + "@" + _UUID + "/IncomingWebhook/H{32}",
        "hex",
    ),
    _row("twilio", "SK", "H{32}", "hex"),
    _row("sendgrid", "SG.", r"B{22}\.B{43}"),
    Format("mailgun", ("key-",), "H{32}", "hex", named=True),
    _middle("mailchimp", r"H{32}-usD{1,2}", "H{16}-usD{1}", 16, test="hex"),
    _row("brevo", "xkeysib- xsmtpsib-", "H{64}-A{16}"),
    _row("resend", "re_", "A{8,9}_A{24,28}"),
    _row("hubspot", "pat-na1- pat-eu1- pat-na2-", _UUID, "hex"),
    _row("intercom", "dG9rO", "C{50,200}={0,2}"),
    _row("facebook", "EAAM EAAC EAAG EAAB", "A{90,300}"),
    _middle(
        "twitter-bearer",
        "[A]{21,26}[A-Za-z0-9%]{60,120}",
        # Base64 of zeros is all `A`: hyperscan is ten times slower where all that may follow it is one class (2026-11).
        "[A]{21}[B-Z][A-Za-z0-9%]{16} [A]{21}[a-z][A-Za-z0-9%]{16} [A]{21}[0-9][A-Za-z0-9%]{16} [A]{21}[%][A-Za-z0-9%]{16}",
        *(1, 0, 2, 3, 4, 5),
        test="padded",
    ),
    _row("mapbox", "sk.eyJ", r"B{40,200}\.B{22}"),
    _row("typeform", "tfp_", "[A-Za-z0-9_.=-]{40,60}"),
    _row("launchdarkly", "sdk- api-", _UUID, "hex")._replace(
        near=(
            "launchdarkly",
            "launch_darkly",
            "launch-darkly",
            "ld_",
            "sdk_key",
            "sdk-key",
            "sdkkey",
        )
    ),
    _row("newrelic", "NRAK- NRII- NRRA-", "[A-Za-z0-9-]{27,42}"),
    _row("grafana", "glc_ glsa_", "[A-Za-z0-9+/_]{32,400}={0,2}"),
    _row("grafana-old", "eyJrIjoi", "A{60,400}={0,2}", "none"),
    _row("sentry", "sntryu_", "H{64}", "hex"),
    _row("sentry-org", "sntrys_eyJpYXQiO", "C{60,400}={0,2}(?:_C{43})?", "none"),
    _row("posthog-personal", "phx_", "A{43,100}"),
    _middle("maxmind", "A{6}_A{29}_mmk", "_A{29}_mmk", 6),
    _row("adobe", "p8e-", "L{32}"),
    _row("frameio", "fio-u-", "B{64}"),
    _row("contentful-management", "CFPAT-", "B{43}"),
    _row("clickhouse", "4b1d", "A{38}"),
    _row("docusign-refresh", "aorAAA aoaAA", "B{100,500}"),
    # Anybody's
    _row("bcrypt", "$2a$ $2b$ $2y$", r"D{2}\$[A-Za-z0-9./]{53}", family="password-hash"),
    _row(
        "sha-crypt",
        "$5$ $6$",
        r"(?:rounds=D{4,9}\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{43,86}",
        family="password-hash",
    ),
    _row(
        "md5-crypt",
        "$apr1$ $1$",
        r"[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}",
        family="password-hash",
    ),
    _middle(
        "argon2",
        r"\$argon2(?:id|i|d)\$(?:v=D{1,3}\$)?m=D{1,8},t=D{1,4},p=D{1,3}\$C{8,88}\$C{16,172}",
        r"\$argon2id\$ \$argon2i\$ \$argon2d\$",
        0,
        family="password-hash",
    ),
    _row(
        "yescrypt",
        "$y$ $gy$",
        r"[A-Za-z0-9./]{1,100}(?:\$[A-Za-z0-9./]{1,86})?\$[A-Za-z0-9./]{43}",
        family="password-hash",
    ),
    _row(
        "scrypt-crypt",
        "$7$",
        r"[A-Za-z0-9./]{11}[A-Za-z0-9./]{1,86}\$[A-Za-z0-9./]{43}",
        "none",
        family="password-hash",
    ),
    _row(
        "pbkdf2",
        "pbkdf2_sha256$ pbkdf2_sha1$ pbkdf2_sha512$ $pbkdf2$ $pbkdf2-sha256$ $pbkdf2-sha512$",
        r"D{1,8}\$[A-Za-z0-9./]{1,64}\$[A-Za-z0-9./+]{20,120}={0,2}",
        family="password-hash",
    ),
    _row(
        "werkzeug-hash",
        "scrypt: pbkdf2:sha256: pbkdf2:sha512:",
        r"D{1,8}(?::D{1,3}:D{1,3})?\$A{1,64}\$H{64,128}",
        family="password-hash",
    ),
    _row(
        "scram",
        "SCRAM-SHA-1$ SCRAM-SHA-256$ SCRAM-SHA-512$",
        r"D{1,8}:C{8,100}={0,2}\$C{20,100}={0,2}:C{20,100}={0,2}",
        family="password-hash",
    ),
    _row(
        "ldap-hash", "{SHA} {SSHA} {SSHA256} {SSHA512}", r"C{24,200}={0,2}", family="password-hash"
    ),
    _middle("nt-hash", "X{32}:X{32}", ":X{32}", 32, test="hex", family="password-hash"),
    _row("mysql-hash", "*", "[0-9A-F]{40}", "hex", family="password-hash"),
    # Keys of Azure that name their service in the middle
    _middle(
        "azure-common",
        r"A{52}JQQJ9[9DH]A{1}[A-L]A{16}[A-Za-z]A{7}(?:A{2}==)?",
        "JQQJ9[9DH]A{1}[A-L]A{16}",
        52,
        family="azure-key",
    ),
    _middle("azure-function", r"B{44}AzFuB{5}[AQgw]==", "AzFuB{5}[AQgw]==", 44, family="azure-key"),
    _middle("azure-search", "A{42}AzSe[A-D]A{5}", "AzSe[A-D]A{5}", 42, family="azure-key"),
    _middle(
        "azure-bus",
        r"C{33}(?:\+ARm|\+AEh|\+ASb|AIoT|AzCa|AZEG)[A-P]C{5}=",
        r"\+ARm[A-P]C{5}= \+AEh[A-P]C{5}= \+ASb[A-P]C{5}= AIoT[A-P]C{5}= AzCa[A-P]C{5}= AZEG[A-P]C{5}=",
        33,
        family="azure-key",
    ),
    _middle(
        "azure-account",
        r"C{76}(?:\+ASt|ACDb|\+ABa|\+AMC|APIM)C{5}[AQgw]==",
        r"\+AStC{5}[AQgw]== ACDbC{5}[AQgw]== \+ABaC{5}[AQgw]== \+AMCC{5}[AQgw]== APIMC{5}[AQgw]==",
        76,
        family="azure-key",
    ),
    _middle("azure-registry", r"C{42}\+ACR[A-D]C{5}", r"\+ACR[A-D]C{5}", 42, family="azure-key"),
    # What agents call, and what calls them
    _row("slack-workflow", "hooks.slack.com/workflows/", "TU{8,12}/AU{8,12}/D{17,19}/A{23,25}"),
    _row("slack-trigger", "hooks.slack.com/triggers/", "[ET]U{8,12}/D{12,15}/H{32}"),
    _row("zapier-hook", "hooks.zapier.com/hooks/catch/", "D{5,10}/L{5,10}"),
    _row("tines-hook", ".tines.com/webhook/", "L{32}/L{32}"),
    _row("apify", "apify_api_", "A{36}"),
    _row("cloudflare-token", "cfut_ cfat_ cfk_", "A{40}H{8}"),
    _row("deno", "ddp_ ddw_", "A{36}"),
    _row("e2b", "e2b_", "H{40}", "hex"),
    _row("helicone", "sk-helicone-", "L{7}-L{7}-L{7}-L{7}", family="sk"),
    _row("inngest", "signkey-prod- signkey-test-", "H{64}", "hex"),
    _row("axiom", "xaat-", _UUID, "hex"),
    _row("dropbox", "sl. sl.u.", "B{130,1400}"),
    _row("adafruit", "aio_", "A{28}"),
    _row("atlassian-datacenter", "BBDC-", "[A-Za-z0-9+/@_-]{40,50}"),
    _row("bannerbear", "bb_pr_ bb_ma_", "H{30}", "hex"),
    _row("endor", "endr+", "[A-Za-z0-9-]{16}"),
    _row("fleetbase", "flb_live_", "A{20}"),
    _row("flexport", "shltm_", "B{40}"),
    _row("fullstory", "na1.", "C{100}"),
    _row("infracost", "ico-", "A{32}"),
    _row("intra42", "s-s4t2ud- s-s4t2af-", "H{64}", "hex"),
    _row("harness", "pat. sat.", r"B{22}\.A{24}\.A{20}"),
    _row("klaviyo", "pk_", "H{34}", "hex"),
    _row("lob", "live_ test_", "H{35}", "hex"),
    _row("newrelic-query", "NRIQ- NRII-", "B{25,32}", family="newrelic"),
    _row("nightfall", "NF-", "A{32}"),
    _row("pagarme", "ak_live_", "A{30}"),
    _row("ramp", "ramp_sec_", "A{48}"),
    _row("robinhood", "rh-api-", _UUID, "hex"),
    _row("rootly", "rootly_", "H{64}", "hex"),
    _row("salad", "salad_cloud_", "A{1,7}_A{16,235}"),
    _middle("salesforce", r"00DA{12}![A-Za-z0-9_.]{96}", r"00DA{12}![A-Za-z0-9_.]{8}", 0),
    _row("scalingo", "tk-us-", "B{48}"),
    _row("settlemint", "sm_aat_ sm_pat_ sm_sat_", "A{16}"),
    _row("sonarcloud", "sqco_", "A{59}"),
    _row("cody", "slk_", "H{64}", "hex"),
    _middle("stripe-client-secret", "pi_A{24}_secret_A{25}", "_secret_A{25}", 27),
    _row("ubidots", "BBFF-", "A{30}"),
    _row("voiceflow", "VF. VF.DM. VF.WS.", r"X{24}\.A{16}"),
    _middle("webex-bot", "A{64}_A{4}_" + _UUID, "_A{4}_" + _UUID, 64),
    _row("zoho", "1000.", r"H{32}\.H{32}", "hex"),
    _row("1password-secret-key", "A3-", "U{6}-(?:U{11}|U{6}-U{5})-U{5}-U{5}-U{5}"),
    _row("defined-networking", "dnkey-", "[a-z0-9=_-]{26}-[a-z0-9=_-]{52}"),
    _row(
        "authress",
        "sc_ scauth_ authress_",
        r"L{5,30}\.L{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
    ),
    _row(
        "securestring",
        "76492d1116743f0423413b16050a5345MgB8A",
        "C{40,4000}={0,2}",
        "none",
    ),
    _row(
        "securestring-dpapi",
        "01000000d08c9ddf0115d1118c7a00c04fc297eb 01000000D08C9DDF0115D1118C7A00C04FC297EB",
        "X{160,4000}",
        "none",
        family="securestring",
    ),
    _row("jwt", _TOKEN, r"B{2,2000}\.eyB{8,8000}\.B{16,2000}", "header"),
    _row(
        "jwe",
        _TOKEN,
        r"B{2,2000}\.B{0,1000}\.B{12,200}\.B{16,20000}\.B{16,100}",
        "header",
        family="jwt",
    ),
)
"""All rows; of two with the same prefix each is tried, the longest match is taken."""


def expand(pattern: str) -> str:
    """Write a pattern of the table as a regular expression."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
        elif char == "[":
            end = pattern.index("]", at) + 1
            parts.append(pattern[at:end])
            at = end
        elif char in CLASSES and pattern[at + 1 : at + 2] == "{":
            parts.append(CLASSES[char])
            at += 1
        else:
            parts.append(char)
            at += 1
    return "".join(parts)
