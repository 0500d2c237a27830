"""Known prefixes of keys and tokens: they say whose a secret is, and nothing of the secret.

Source: the providers' own pages on their keys, and the public rules of gitleaks.
"""

_WRITTEN = """
sk-proj- sk-svcacct- sk-admin- sk-None- sk-ant-api03- sk-ant-admin01- sk-ant-oat01- sk-ant-ort01- sk-ant-sid01- sk-or-v1- sk-lf- pk-lf- sk-
lsv2_pt_ lsv2_sk_ gsk_ xai- pplx- hf_ api_org_ r8_ tvly-dev- tvly-prod- tvly- fw_ csk- nvapi- pcsk_ tgp_v1_ fc- jina_ sk_
AKIA ASIA ABIA ACCA ABSK bedrock-api-key- AIza ya29. 1//0 GOCSPX- LTAI AKID AQVN YCAJE YCMAJ dop_v1_ doo_v1_ dor_v1_
hvs. hvb. hvr. v1.0- HRKU-AA HRKU- fo1_ fm1r_ fm1a_ fm2_ rnd_ vercel_blob_rw_ vcp_ vci_ vca_ nfp_ sbp_ sb_secret_ napi_
pscale_tkn_ pscale_oauth_ pscale_pw_ dapi cflt pul- dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dt0c01. dt0s01.
tskey-auth- tskey-api- tskey-client- ops_eyJ AGE-SECRET-KEY-1 ghp_ gho_ ghu_ ghs_ ghr_ github_pat_
glpat- gldt- glrt- glft- glsoat- glffct- glimt- glagent- gloas- glptt- glcbt- GR1348941 ATBB ATATT3 ATCTT3
npm_ pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw pypi- rubygems_ CLOJARS_ dckr_pat_ dckr_oat_ AKCp CCIPAT_ CCIPRJ_
bkua_ bkaj_ bkpt_ squ_ sqp_ sqa_ sgp_ sha256~ pnu_ pnb_ PMAK- rdme_ lin_api_ lin_oauth_ ntn_ figd_ figdr_ figo_
sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ whsec_ sq0atp- sq0csp- access_token$production$ access_token$sandbox$
access-sandbox- access-production- access-development- FLWSECK_TEST- FLWSECK- rzp_live_ rzp_test_ shpat_ shpss_ shpca_ shppa_
shippo_live_ shippo_test_ duffel_test_ duffel_live_ xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe.xoxp-1- xoxe.xoxb-1- xoxe-1-
xapp-1-A SG. key- xkeysib- xsmtpsib- re_ pat-na1- pat-eu1- pat-na2- sk.eyJ tfp_ sdk- api- NRAK- NRII- NRRA- glc_ glsa_
sntryu_ sntrys_eyJpYXQiO phx_ p8e- fio-u- CFPAT- 0x
"""
PREFIXES: tuple[bytes, ...] = tuple(
    sorted((word.encode() for word in _WRITTEN.split()), key=len, reverse=True)
)
"""Longest first."""
_LEAST = 12
"""Characters behind a prefix, so that no short secret is given away by its beginning."""


def prefix_size(value: bytes) -> int:
    """Give the length of the longest known prefix of a value, 0 where it has none."""
    for prefix in PREFIXES:
        if value.startswith(prefix) and len(value) - len(prefix) >= _LEAST:
            return len(prefix)
    return 0
