"""The shapes of keys that issuers publish: what stands first, how many characters of which alphabet follow. Data only."""

from __future__ import annotations

from typing import NamedTuple

_HEX, _UPPER, _ALNUM, _WORD, _URL = "0-9a-f", "A-Z0-9", "A-Za-z0-9", "A-Za-z0-9_", "A-Za-z0-9_-"
_BASE64, _DOTTED = "A-Za-z0-9+/=", "A-Za-z0-9_.-"


class IssuedKey(NamedTuple):
    """`prefix` is plain text, `alphabet` the inside of a character class, `least` and `most` how many of them follow."""

    prefix: str
    alphabet: str
    least: int
    most: int


ISSUED_KEYS: tuple[IssuedKey, ...] = tuple(
    IssuedKey(prefix, alphabet, least, most)
    for prefixes, alphabet, least, most in (
        # clouds
        ("AKIA ASIA ABIA ACCA", _UPPER, 16, 16), ("ABSK", _BASE64, 100, 300), ("AIza", _URL, 35, 35),
        ("GOCSPX-", _URL, 28, 28), ("ya29.", _URL, 40, 2000), ("1//0", _URL, 40, 200), ("LTAI", _ALNUM, 16, 24),
        ("AKID", _ALNUM, 32, 32), ("AQVN", _URL, 35, 38), ("dop_v1_ doo_v1_ dor_v1_", _HEX, 64, 64),
        ("HRKU-", _URL, 36, 70), ("fm2_ fo1_", "A-Za-z0-9+/=_-", 40, 2000), ("nfp_", _ALNUM, 36, 40), ("sbp_", _HEX, 40, 40),
        ("sb_secret_", _URL, 20, 60), ("pscale_tkn_ pscale_pw_ pscale_oauth_", _DOTTED, 32, 64), ("dapi", _HEX, 32, 34),
        ("napi_", _ALNUM, 40, 100), ("rnd_", _ALNUM, 28, 40), ("v1.0-", _HEX, 24, 200), ("t1.", _DOTTED, 100, 300),
        ("vcp_ vci_ vca_ vcr_ vck_", _ALNUM, 24, 80), ("tk-us-", _URL, 48, 48), ("ddp_", _ALNUM, 36, 36),
        ("expo_", _ALNUM, 40, 40),
        # code and packages
        ("ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 30, 255), ("github_pat_", _WORD, 40, 255),
        ("glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct-", _DOTTED, 20, 100),
        ("GR1348941", _URL, 20, 20), ("pypi-", _URL, 50, 500), ("npm_", _ALNUM, 36, 36), ("rubygems_", _HEX, 48, 48),
        ("dckr_pat_ dckr_oat_", _URL, 24, 40), ("oy2", "a-z0-9", 43, 43), ("CLOJARS_", _ALNUM, 60, 60), ("cio", _ALNUM, 32, 32),
        ("ATATT3xFfGF0 ATCTT3xFfGF0", "A-Za-z0-9=_-", 60, 250), ("ATBB", _ALNUM, 32, 32), ("AKCp", _ALNUM, 60, 100),
        ("cmVmdGtuO", _ALNUM, 50, 64), ("CCIPAT_ CCIPRJ_", _WORD, 60, 70), ("bkua_", _HEX, 40, 40), ("API-", _UPPER, 26, 26),
        ("squ_ sqp_ sqa_", _HEX, 40, 40), ("PMAK-", "0-9a-f-", 59, 59), ("rdme_", "a-z0-9", 70, 70),
        # models
        ("hf_", _ALNUM, 30, 200), ("gsk_ r8_ lev_", _URL, 30, 200), ("xai-", _ALNUM, 40, 200), ("pplx- csk-", _ALNUM, 40, 60),
        ("nvapi-", _URL, 60, 80), ("tgp_v1_", _URL, 40, 60), ("tvly-", _URL, 28, 60), ("lsv2_pt_ lsv2_sk_", "0-9a-f_", 43, 43),
        ("pcsk_", _WORD, 50, 90), ("e2b_", _HEX, 40, 40), ("fw_", _ALNUM, 22, 30),
        ("jina_", _ALNUM, 60, 60), ("sk_", _HEX, 48, 48), ("fc-", _HEX, 32, 32), ("pa-", _URL, 43, 43),
        ("esecret_", _ALNUM, 36, 60), ("wandb_v1_", _URL, 60, 100),
        # payment and trade
        ("sk_live_ sk_test_ rk_live_ rk_test_ sk_org_live_ sk_org_test_", _ALNUM, 16, 200), ("whsec_", _BASE64, 32, 64),
        ("shpat_ shpca_ shppa_ shpss_", "0-9a-fA-F", 32, 32), ("sq0atp- sq0csp-", _URL, 22, 60), ("EAAAE EAAAl", _URL, 50, 80),
        ("rzp_live_ rzp_test_", _ALNUM, 14, 14), ("FLWSECK- FLWSECK_TEST-", _ALNUM, 32, 34), ("EZAK EZTK", _ALNUM, 54, 54),
        ("shippo_live_ shippo_test_", _HEX, 40, 40), ("live_ test_", _HEX, 35, 35),
        ("access_token$production$", "a-z0-9$", 49, 49),
        ("duffel_live_ duffel_test_", _URL, 43, 43), ("access-sandbox- access-production-", "0-9a-f-", 36, 36),
        # messages and mail
        ("xoxa- xoxb- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", "A-Za-z0-9-", 10, 250), ("xapp-", "A-Za-z0-9-", 40, 200),
        ("hooks.slack.com/services/ hooks.slack.com/workflows/", "A-Za-z0-9/", 40, 80), ("key-", _HEX, 32, 32),
        ("xkeysib- xsmtpsib-", "A-Za-z0-9-", 64, 90),
        ("webhook.office.com/webhookb2/", "A-Za-z0-9@/-", 100, 300), ("mlsn.", _HEX, 64, 64), ("dG9rOj", _BASE64, 50, 80),
        ("SK", _HEX, 32, 32), ("EAAC", _ALNUM, 80, 250),
        ("AAAAAAAAAAAAAAAAAAAAA", "A-Za-z0-9%", 30, 120),
        # watching
        ("glsa_", _WORD, 41, 41), ("glc_", _BASE64, 60, 400), ("NRAK-", _UPPER, 27, 27), ("NRJS-", _HEX, 19, 19),
        ("sntrys_ sntryu_", "A-Za-z0-9+/=_", 60, 300), ("phx_", _ALNUM, 40, 60), ("dt0c01. dt0s01.", "A-Z0-9.", 89, 89),
        ("hcaik_", "a-z0-9", 58, 58), ("sgp_", _WORD, 40, 64),
        # secrets, hosts and work
        ("council-plan-", _DOTTED, 100, 2000), ("council-key- council-link- council-session-", _ALNUM, 40, 60),
        ("hvs. hvb. hvr.", _URL, 24, 300), ("dp.pt. dp.st. dp.ct. dp.sa.", _DOTTED, 40, 64), ("pul-", _HEX, 40, 40),
        ("ops_eyJ", _URL, 100, 2000), ("AGE-SECRET-KEY-1", _UPPER, 58, 58),
        ("tskey-auth- tskey-api- tskey-client-", _URL, 20, 80),
        ("ico-", _ALNUM, 32, 32), ("api- sdk- mob-", "0-9a-f-", 36, 36), ("A3-", "A-Z0-9-", 32, 40),
        ("pnu_", _ALNUM, 36, 36), ("ntn_", _ALNUM, 43, 50), ("secret_", _ALNUM, 43, 43), ("lin_api_ lin_oauth_", _ALNUM, 40, 64),
        ("figd_", _URL, 40, 60), ("tfp_", _DOTTED, 44, 60), ("pat-na1- pat-eu1-", "0-9a-f-", 36, 36), ("p8e-", _ALNUM, 32, 32),
        ("sk.eyJ", _DOTTED, 60, 200), ("sl.", _URL, 130, 200), ("CFPAT-", _URL, 43, 43), ("fio-u-", _URL, 64, 64),
    )
    for prefix in prefixes.split()
)  # fmt: skip
