"""The corpus of secrets: made when a test asks, so that nothing that looks like a key stands in any file.

A template is text with places to fill: `<A36>` 36 letters and digits, `<a20>` small letters and digits, `<x64>` hex
digits, `<d10>` digits, `<U16>` capitals and 2 to 7, `<C27>` capitals and digits, `<l34>` letters, `<w43>` base64url,
`<b40>` base64, `<N>` a line feed. Each kind has a twin that looks like it and is no secret.
"""

from __future__ import annotations

import random
import re
import string
from typing import NamedTuple

LETTERS, DIGITS = string.ascii_letters, string.digits
ALPHABETS = {
    "A": LETTERS + DIGITS,
    "a": string.ascii_lowercase + DIGITS,
    "x": "0123456789abcdef",
    "d": DIGITS,
    "U": string.ascii_uppercase + "234567",
    "C": string.ascii_uppercase + DIGITS,
    "l": LETTERS,
    "w": LETTERS + DIGITS + "_-",
    "b": LETTERS + DIGITS + "+/",
    "B": "023456789ACDEFGHJKLMNPQRSTUVWXYZ",
}
PLACE = re.compile(r"<([AaxdUClwbB])(\d+)>|<N>")


class Key(NamedTuple):
    """A kind of secret: where it stands (`{}`), what it looks like, and a line with its legitimate twin."""

    name: str
    secret: str
    twin: str
    where: str = "{}"


UUID = "<x8>-<x4>-4<x3>-a<x3>-<x12>"
KEYS: tuple[Key, ...] = (
    Key("aws access key id", "AKIA<U16>", "AKIAIOSFODNN7EXAMPLE is the one in the guide"),
    Key("aws temporary key id", "ASIA<U16>", "ASIA is a prefix; so is AKIA"),
    Key("aws secret access key", "<b40>", "commit <x40>", "aws_secret_access_key = {}"),
    Key("github token", "ghp_<A36>", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    Key("github oauth token", "gho_<A36>", "gho_ stands for OAuth"),
    Key("github app token", "ghs_<A36>", "logs_<A36>_index"),
    Key("github refresh token", "ghr_<A76>", "the column ghr_total of 36 rows"),
    Key("github fine-grained token", "github_pat_<A22>_<A59>", "github_pat_<A3> is too short"),
    Key("gitlab token", "glpat-<w20>", "glpat-xxxxxxxxxxxxxxxxxxxx"),
    Key("gitlab runner token", "glrt-<w20>", "a glrt- prefix"),
    Key("slack bot token", "xoxb-<d12>-<d12>-<A24>", "xoxb-your-token"),
    Key("slack user token", "xoxp-<d12>-<d12>-<d12>-<x32>", "xoxp tokens are for users"),
    Key("slack app token", "xapp-1-A<C10>-<d13>-<x64>", "xapp-1-<A4>"),
    Key("slack webhook", "T<C8>/B<C8>/<A24>", "https://hooks.slack.com/services/", "https://hooks.slack.com/services/{}"),
    Key("anthropic key", "sk-ant-api03-<w93>AA", "export ANTHROPIC_API_KEY=sk-ant-..."),
    Key("anthropic oauth token", "sk-ant-oat01-<w93>AA", "sk-ant-oat01 is for OAuth"),
    Key("openai project key", "sk-proj-<w74>T3BlbkFJ<w74>", "sk-proj-..."),
    Key("openai key", "sk-<A20>T3BlbkFJ<A20>", "class sk-circle-fade-dot"),
    Key("openrouter key", "sk-or-v1-<x64>", "sk-or-v1- and 64 hex digits"),
    Key("deepseek key", "sk-<x32>", "task-<x32>"),
    Key("google api key", "AIza<w35>", "AIza is how they begin"),
    Key("google access token", "ya29.<w80>", "ya29.short"),
    Key("google client secret", "GOCSPX-<w28>", "GOCSPX-secret"),
    Key("stripe secret key", "sk_live_<A24>", "sk_live_..."),
    Key("stripe restricted key", "rk_live_<A24>", "mark_live_and_learn_from_it"),
    Key("stripe webhook secret", "whsec_<A32>", "whsec_<A5>"),
    Key("npm token", "npm_<A36>", "npm_config_registry_with_a_very_long_name"),
    Key("python index token", "pypi-AgEIcHlwaS5vcmc<w80>", "pypi-AgE is its beginning"),
    Key("rubygems key", "rubygems_<x48>", "rubygems_mirror"),
    Key("json web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI<w20>.<w43>", "eyJhbGciOiJIUzI1NiJ9 is a header"),
    Key("azure storage key", "<b86>==", "AccountName=shop;Suffix=windows.net", "AccountName=shop;AccountKey={};X=1"),
    Key("azure client secret", "<A3>8Q~<A34>", "8Q~ is in the middle of them"),
    Key("hugging face token", "hf_<l34>", "hf_transfer and hf_hub_download"),
    Key("sendgrid key", "SG.<w22>.<w43>", "SG.com is a domain"),
    Key("twilio key", "SK<x32>", "RISK<x32>"),
    Key("digitalocean token", "dop_v1_<x64>", "sha256:<x64>"),
    Key("telegram bot token", "<d10>:AA<w33>", "at 12:AAPL rose"),
    Key("discord bot token", "M<w25>.G<w5>.<w38>", "Module.Generic.Name"),
    Key("discord webhook", "<w68>", "https://discord.com/api/webhooks/", "https://discord.com/api/webhooks/<d18>/{}"),
    Key("shopify token", "shpat_<x32>", "shpat_ is followed by 32 hex digits"),
    Key("square token", "sq0atp-<w22>", "sq0atp-"),
    Key("mailchimp key", "<x32>-us12", "md5 <x32> of us-east-1"),
    Key("mailgun key", "key-<x32>", "monkey-<x8>"),
    Key("databricks token", "dapi<x32>", "dapi <x32>"),
    Key("new relic key", "NRAK-<C27>", "NRAK-SHORT"),
    Key("grafana token", "glsa_<A32>_<x8>", "glsa_ is for service accounts"),
    Key("linear key", "lin_api_<A40>", "lin_api_v2"),
    Key("notion token", "ntn_<A46>", "ntn_page"),
    Key("postman key", "PMAK-<x24>-<x34>", "PMAK-"),
    Key("atlassian token", "ATATT3x<w180>=<C8>", "ATATT3 tokens"),
    Key("docker token", "dckr_pat_<w27>", "dckr_pat"),
    Key("vault token", "hvs.<w90>", "hvs.json"),
    Key("terraform token", "<A14>.atlasv1.<A67>", "docs.atlasv1.html"),
    Key("doppler token", "dp.pt.<A43>", "dp.pt.x"),
    Key("supabase token", "sbp_<x40>", "sbp_table"),
    Key("sentry token", "sntryu_<x64>", "sntryu_"),
    Key("groq key", "gsk_<A52>", "gsk_model"),
    Key("replicate token", "r8_<A37>", "rsr8_<A37>"),
    Key("xai key", "xai-<A80>", "xai-org/grok"),
    Key("perplexity key", "pplx-<A48>", "pplx-70b-online"),
    Key("airtable token", "pat<A14>.<x64>", "path.<x64>"),
    Key("figma token", "figd_<w40>", "figd_"),
    Key("planetscale token", "pscale_tkn_<w43>", "pscale_tkn_"),
    Key("tailscale key", "tskey-auth-<A16>-<A32>", "tskey-auth-"),
    Key("langsmith key", "lsv2_pt_<x32>_<x10>", "lsv2_pt"),
    Key("age secret key", "AGE-SECRET-KEY-1<B58>", "AGE-SECRET-KEY-1 is the prefix"),
    Key("password in a url", "<A14>", "postgres://user:password@localhost/db", "postgres://app:{}@db.internal.net:5432/shop"),
    Key("bearer header", "<A40>", "Authorization: Bearer <token>", "curl -H 'Authorization: Bearer {}' https://a.net"),
    Key("password in an env file", "<A9>7q2W<A9>", "password: the user's password field", "DB_PASSWORD={}"),
    Key("api key in an env file", "<x31>a", "API_KEY=" + UUID, "MY_API_KEY={}"),
    Key("secret in code", "<A12>x8Y3<A12>", 'token = getAccessTokenFromSession("x")', 'client_secret = "{}"'),
    Key("token in a config", "<A10>5kP4<A10>", "max_tokens: 128000, token_count: 31337", "auth_token: {}"),
)  # fmt: skip

KEY_BLOCKS = tuple(
    Key(
        f"{kind.lower()}private key".strip(),
        f"-----BEGIN {kind}PRIVATE KEY{tail}-----<N>{'<b64><N>' * 5}<b40>=<N>-----END {kind}PRIVATE KEY{tail}-----",
        f'if "-----BEGIN {kind}PRIVATE KEY{tail}-----" in text: refuse()',
    )
    for kind, tail in (("RSA ", ""), ("EC ", ""), ("OPENSSH ", ""), ("", ""), ("ENCRYPTED ", ""), ("PGP ", " BLOCK"))
)  # fmt: skip

PLAIN: tuple[str, ...] = (
    "commit <x40> (HEAD -> main)",
    "sha256:<x64>",
    "integrity sha512-<b86>==",
    "id " + UUID,
    "toolu_<A24> and call_<A24> and msg_<A24>",
    "password: the user's password field",
    "The token is refreshed every 3600 seconds; see AuthTokenProvider.refresh_token().",
    "git clone https://github.com/owner/name.git && ssh git@github.com",
    "http://localhost:8080/path?x=1&key=value",
    "secretKeyRef: {name: db-credentials, key: password}",
    "os.environ['OPENAI_API_KEY'] or process.env.STRIPE_SECRET_KEY",
    "API_KEY=<your-api-key-here> PASSWORD=changeme TOKEN=${GITHUB_TOKEN}",
    "passwordResetTokenExpiresAt: '2026-03-01T10:00:00.000Z'",
    "/home/alice/.ssh/id_ed25519.pub ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA<b43> alice",
    "Etag: W/\"<x32>\" v1.2.3-rc.4+build.5678",
    "version = 3.11.7, port=5432, md5sum <x32>  file.tar.gz",
)  # fmt: skip


def filled(template: str, chosen: random.Random) -> str:
    """A template with its places filled."""

    def fill(place: re.Match[str]) -> str:
        if place[1] is None:
            return "\n"
        return "".join(chosen.choices(ALPHABETS[place[1]], k=int(place[2])))

    return PLACE.sub(fill, template)
