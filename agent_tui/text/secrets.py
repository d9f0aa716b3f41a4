"""What says that a text is secret: names of variables, headers and fields, and the forms that keys and logins have. The
one list, for what is shown, logged and exported, and for what commands get."""

from __future__ import annotations

import re

MASK = "[secret]"
MIN_LENGTH = 8
"""Shorter values are not treated as secrets: replacing them would garble ordinary words."""

_TELLING = r"(?i)KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|ACCESS_?ID|CONNECTION_?STRING"
_WORDS = frozenset(
    (
        *("key", "keys", "apikey", "apikeys", "token", "tokens", "secret", "secrets", "password", "passwords"),
        *("passwd", "passphrase", "pass", "pwd", "credential", "credentials", "creds", "auth", "authorization"),
        *("bearer", "cookie", "cookies", "pat", "dsn", "jwt", "signature", "webhook", "sshpass", "otp", "totp", "pin"),
        *("netrc", "pgpass"),
    )
)
PROVIDERS_KEYS = r"\w*API_?KEY\w*|AWS_(?:SECRET_ACCESS_KEY|SESSION_TOKEN|BEARER_TOKEN_BEDROCK)"
"""Names of the variables that hold providers' keys: nothing else is in them, so that shorter values count, too."""
_NO_SECRETS = (
    r"AWS_(?:DEFAULT_)?REGION|AWS_PAGER|GOOGLE_CLOUD_PROJECT|CLOUDSDK_PYTHON|GPG_TTY|FLYCTL_INSTALL|XKB_DEFAULT_LAYOUT"
    r"|TOKENIZERS_PARALLELISM|PYTHON_KEYRING_BACKEND|LS_COLORS|SSH_AUTH_SOCK|SSH_ASKPASS|GIT_ASKPASS"
    r"|SSH_ASKPASS_REQUIRE|GIT_CONFIG_KEY_\d+"
)
"""Names that look secret and are not."""
_CLOUD = (
    r"(?:AWS|AZURE|ARM|GCP|GCLOUD|CLOUDSDK|GOOGLE|DIGITALOCEAN|HEROKU|VAULT|CONSUL|NOMAD|ALICLOUD|ALIBABA|OCI|IBMCLOUD|"
    r"OP_SESSION|BW_SESSION|RCLONE_CONFIG|KUBECONFIG|DOCKER_CONFIG|DOCKER_AUTH|CLOUDFLARE|CF|FLY|VERCEL|NETLIFY|PULUMI|"
    r"SNOWFLAKE|DATABRICKS|TWILIO|STRIPE|SENDGRID|MAILGUN|NETRC|PGPASSFILE|ACTIONS_ID|ACTIONS_RUNTIME)(?:_|$)"
)
"""How the variables of services begin, which say who somebody is there."""

_BEGINNINGS = "sk|pk|rk|gsk|xai|csk|nvapi|pplx|hf|r8|fw|tgp"
_FORMS = (
    # Behind texts (in small letters) without one of which a pattern is not looked for: to search for a text is cheap.
    (
        tuple(f"{name}{mark}" for name in _BEGINNINGS.split("|") for mark in "-_"),
        rf"\b(?:{_BEGINNINGS})[-_][A-Za-z0-9_\-.]{{12,}}",
    ),
    (("gh", "gl"), r"\b(?:gh[pousr]_|github_pat_|gl(?:pat|ptt|dt|rt|cbt|soat|agent)[-_])[A-Za-z0-9_\-.]{12,}"),
    (
        ("npm_", "pypi-", "xox", "xapp-"),
        r"\b(?:npm_[A-Za-z0-9]{20,}|pypi-[\w-]{30,}|xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,})",
    ),
    (
        ("shp", "_v1_", "whsec_", "lin_", "figd_", "sbp_", "nfp_", "ntn_", "pmak-", "dckr_", "tskey-", "gocspx-"),
        r"\b(?:shp(?:at|ca|pa|ss|ua)_|do[opr]_v1_|whsec_|lin_(?:api|oauth)_|figd_|sbp_|nfp_|ntn_|PMAK-|dckr_pat_"
        r"|tskey-[a-z]+-|GOCSPX-)[A-Za-z0-9+/=_\-]{16,}",
    ),
    (("sg.", "hvs.", "ya29."), r"\b(?:SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}|ya29\.[\w-]{20,})"),
    (("age-secret-key-",), r"(?i)\bAGE-SECRET-KEY-1[A-Z0-9]{30,}"),
    # Telegram's and Discord's.
    ((":",), r"(?<!\w)(?:bot)?\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])"),
    ((".",), r"(?<![\w.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![\w-])"),
    (("aiza",), r"\bAIza[0-9A-Za-z_\-]{20,}"),
    (("accountkey", "accesskey"), r"(?i)(?<![a-z])((?:account|shared[-_]?access)key)=[A-Za-z0-9+/=]{16,}"),
    (("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (("eyj",), r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    (("private key",), r"-----BEGIN [A-Z ]*PRIVATE KEY.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
)
_PLACES = (
    (("bearer ", "basic "), r"(?i)(?<=bearer )[A-Za-z0-9._~+/=\-]{8,}|(?<=basic )[A-Za-z0-9+/=]{12,}"),
    (("://",), r"(?<=://)[^/\s:@?#]*:[^/\s@]+(?=@)|(?<=://)[^/\s:@?#]{16,}(?=@)"),
    (
        ("=",),
        r"(?i)(?<=[?&#])((?:api[-_]?)?key|(?:(?:access|refresh|id|auth|session)[-_]?)?token|(?:client[-_]?)?secret"
        r"|password|passwd|code|sig|signature|x-amz-(?:signature|security-token|credential))=[^&\s\"'<>#]{6,}",
    ),
)
_FIELDS = ("api", "auth", "token", "secret", "key", "passw", "cookie")
_FIELD = (
    r"(?i)((?:x-api-key|api[-_]?key|x-goog-api-key|(?:proxy-)?authorization"
    r"|(?:access|refresh|id|auth|session)[-_]?token|(?:secret|private|account|master|signing|encryption|shared[-_]?access)"
    r"[-_]?(?:access[-_]?)?key|(?:client|app|webhook)[-_]?secret|password|passwd|passphrase"
    r"|(?:set-)?cookie)[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?)([^\s\"',;}\]]{6,})"
)
_LOGIN = r"://[^/\s:@]*:[^/\s@]+@"
_PASSED = r"(?i)(?:password|passwd|passphrase|secret|token|(?<![a-z])(?:pass|pwd|key|sig|signature|auth))=[^\s&;,]"


def names_secret(name: str) -> bool:
    """Returns whether a variable's, a header's or a field's name says that its value is secret."""
    words = re.split(r"[^A-Za-z0-9]+", name.lower())
    return not re.fullmatch(_NO_SECRETS, name) and (
        not _WORDS.isdisjoint(words) or re.search(_TELLING, name) is not None
    )


def names_account(name: str) -> bool:
    """Returns whether a variable's name says that its value is secret, or who somebody is at a service."""
    return names_secret(name) or (not re.fullmatch(_NO_SECRETS, name) and re.match(_CLOUD, name.upper()) is not None)


def holds_secret(value: str) -> bool:
    """Returns whether a value is a key by its form, or has a login or a password in it, whatever it is called."""
    if re.search(_LOGIN, value) or re.search(_PASSED, value) or "PRIVATE KEY-----" in value:
        return True
    return any(re.match(pattern, value, re.DOTALL) for _, pattern in _FORMS)


def tells_secret(settings: str) -> bool:
    """Returns whether the text of a configuration has a name in it, of a table or of a value, that says that something
    is secret, or looks like a key or a login."""
    names = re.findall(r"(?m)^[^\S\n]*+\[([^]\n]*)|(?<![\w.-])([\w.-]++)[\"']?\s*+[:=]", settings)
    return any(names_secret(name) for pair in names for name in pair) or without_keys(settings) != settings


def without_keys(text: str, *, fields: bool = True) -> str:
    """A text with the mask in place of all that looks like a key or a login, and of the values of
    fields whose names say that they are secret."""
    small = text.lower()
    for beginnings, pattern in (*_FORMS, *_PLACES):
        if any(beginning in small for beginning in beginnings):
            text = re.sub(pattern, _masked, text, flags=re.DOTALL)
    if fields and any(word in small for word in _FIELDS):
        text = re.sub(_FIELD, rf"\g<1>{MASK}", text)
    return text


def beginning_without_keys(text: str) -> str:
    """As much of a text as a line is made of that names something, without keys: cut first, a part of one could be
    left."""
    return without_keys(text[:20_000])


def _masked(match: re.Match[str]) -> str:
    """The mask; behind the name of a query's field."""
    return f"{match[1]}={MASK}" if match.re.groups and match[1] else MASK
