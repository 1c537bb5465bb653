"""Settings, read from the environment and safe without any. They never start a server.

With no `DATABASE_URL` the embedded PostgreSQL's socket is used, with no `CELERY_BROKER_URL` Valkey's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.utils.csp import CSP
from django.utils.translation import gettext_lazy as _

from console import env, logs
from console.embedded.home import Home
from console.secret import secret_key
from runs.durations import PROFILES, profile

BASE_DIR = Path(__file__).resolve().parent.parent
HANDOFF_HOME = Home.default()
HANDOFF_PROFILE = env.choice("HANDOFF_PROFILE", among=PROFILES, default="production")
HANDOFF_DURATIONS = profile(HANDOFF_PROFILE)
HANDOFF_ROLE = env.choice("HANDOFF_ROLE", among={"web", "worker", "beat", "command"}, default="command")
TESTING = HANDOFF_PROFILE == "test"
# Dotted paths of agents, "package.module:NAME".
HANDOFF_AGENTS = env.words(
    "HANDOFF_AGENTS", default="" if TESTING or env.text("DATABASE_URL") else HANDOFF_HOME.agents
)

# --- Secrets, hosts, cookies ---
DEBUG = env.flag("HANDOFF_DEBUG")
SECRET_KEY = secret_key(file=HANDOFF_HOME.secret_key, made_for_you=TESTING or not env.text("DATABASE_URL"))
ALLOWED_HOSTS = env.words("HANDOFF_HOSTS", default="localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("HANDOFF_TRUSTED_ORIGINS")

HANDOFF_TLS = env.flag("HANDOFF_TLS")
SECURE_SSL_REDIRECT = HANDOFF_TLS
# Asked by machines beside this one, which speak no TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SESSION_COOKIE_SECURE = HANDOFF_TLS
CSRF_COOKIE_SECURE = HANDOFF_TLS
SECURE_HSTS_SECONDS = 31_536_000 if HANDOFF_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HANDOFF_TLS
SECURE_HSTS_PRELOAD = HANDOFF_TLS
SECURE_REFERRER_POLICY = "same-origin"
# Believed only where a proxy is known to set them, since anybody else can send them.
HANDOFF_BEHIND_PROXY = env.flag("HANDOFF_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HANDOFF_BEHIND_PROXY else None
USE_X_FORWARDED_HOST = HANDOFF_BEHIND_PROXY

SESSION_COOKIE_NAME = "handoff_session"
SESSION_COOKIE_AGE = 8 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "handoff_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}

# --- Applications ---
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "guardian",
    "django_htmx",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "accounts",
    "approvals",
    "runs",
    "console",
    *sorted({path.split(":")[0].rpartition(".")[0] for path in HANDOFF_AGENTS}),
]
MIDDLEWARE = [
    "console.middleware.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "console.middleware.OwnLanguage",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
CSRF_FAILURE_VIEW = "console.errors.csrf_failure"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
            ],
        },
    },
]

# --- Database ---
_database = env.database(env.text("DATABASE_URL", default=HANDOFF_HOME.database_url))
# Statements are prepared at their second use at the latest: the ledger's functions are called over and over.
_database["OPTIONS"]["prepare_threshold"] = 1
if HANDOFF_ROLE == "web":
    # A persistent connection per thread leaks under ASGI; a pool does not.
    _database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 10, "timeout": 10}
DATABASES = {
    "default": {
        **_database,
        "CONN_MAX_AGE": 0 if HANDOFF_ROLE == "web" else None,
        "CONN_HEALTH_CHECKS": True,
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People ---
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Refused sign-ins are counted by name and by address, in the database, so over all processes.
AXES_HANDLER = "accounts.throttle.Throttle"
AXES_FAILURE_LIMIT = 1
AXES_LOCKOUT_PARAMETERS = ["username", "ip_address"]
AXES_COOLOFF_TIME = HANDOFF_DURATIONS.lockout
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_CLIENT_IP_CALLABLE = "accounts.address.client_address"
AXES_ENABLE_ADMIN = False
# The pages of signing in answer 429 themselves.
SILENCED_SYSTEM_CHECKS = ["axes.W002"]
AXES_VERBOSE = False
HANDOFF_SIGN_IN_FAILURES_OF_A_NAME = env.number("HANDOFF_SIGN_IN_FAILURES_OF_A_NAME", default=5)
HANDOFF_SIGN_IN_FAILURES_OF_AN_ADDRESS = env.number("HANDOFF_SIGN_IN_FAILURES_OF_AN_ADDRESS", default=30)

# People are made by those who manage them: nobody signs up, and no mail is sent.
ACCOUNT_ADAPTER = "accounts.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_ENABLED = False
# Counted by the handler above instead.
ACCOUNT_RATE_LIMITS = False
MFA_ADAPTER = "accounts.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Handoff"
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
SOCIALACCOUNT_ADAPTER = "accounts.adapters.IdentityAdapter"
SOCIALACCOUNT_ONLY = False
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_QUERY_EMAIL = True
# Another service that says who somebody is, by OpenID Connect; without an issuer there is none.
HANDOFF_OIDC_ISSUER = env.text("HANDOFF_OIDC_ISSUER")
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {"openid_connect": {"APPS": []}}
if HANDOFF_OIDC_ISSUER:
    SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"] = [
        {
            "provider_id": "oidc",
            "name": env.text("HANDOFF_OIDC_NAME", default="single sign-on"),
            "client_id": env.text("HANDOFF_OIDC_CLIENT_ID"),
            "secret": env.text("HANDOFF_OIDC_CLIENT_SECRET"),
            "settings": {"server_url": HANDOFF_OIDC_ISSUER},
        }
    ]
# Codes that were used and tokens that were seen, over all processes.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "accounts_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# --- Language and time ---
LANGUAGE_CODE = "en"
# A language is offered once its catalogue is there: half a translation reads worse than none.
_chinese = (BASE_DIR / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo").exists()
LANGUAGES = [("en", _("English")), *([("zh-hans", _("Simplified Chinese"))] if _chinese else [])]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True

# --- Static files ---
STATIC_URL = "/static/"
STATIC_ROOT = HANDOFF_HOME.static
STATICFILES_DIRS = [BASE_DIR / "static"]
_hashed = "whitenoise.storage.CompressedManifestStaticFilesStorage"
_plain = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _plain if TESTING else _hashed},
}
WHITENOISE_USE_FINDERS = TESTING

# --- Artifacts ---
# A folder that web and workers share; another storage is a matter of a settings module of one's own.
STORAGES["artifacts"] = {
    "BACKEND": "runs.storage.DurableFiles",
    "OPTIONS": {"location": env.text("HANDOFF_ARTIFACTS", default=str(HANDOFF_HOME.artifacts))},
}
# Bytes that a planner may be given at once; an agent may declare its own.
#: Kind of resource -> how long what was read of one may be taken for current, whatever tools and agents say.
HANDOFF_HALF_LIVES = env.lengths("HANDOFF_HALF_LIVES")
#: Beside what agents name: a document of constraints for all of them, as a path or a url (docs/constraints.md).
HANDOFF_CONFIGURATION = env.text("HANDOFF_CONFIGURATION")
HANDOFF_CONTEXT_BUDGET = env.number("HANDOFF_CONTEXT_BUDGET", default=1024 * 1024)

# --- Celery ---
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", default=HANDOFF_HOME.broker_url)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_DEFAULT_QUEUE = "handoff"
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Else the library closes the database's connection around every task, and each begins with a new backend. Whether it is
# still good is asked before each task instead (console.celery).
CELERY_DB_REUSE_MAX = 10_000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_TIMEOUT = 2
# A sender does not wait for a broker that is away: the sweep sends again. (A worker waits for ever.)
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {"max_retries": 0}
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
if CELERY_BROKER_URL.startswith(("redis", "rediss", "sentinel")):
    # The defaults look for messages of dead workers every 100 seconds only.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "visibility_timeout": 60 if HANDOFF_PROFILE != "production" else 900,
        "unacked_restore_interval": 2,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
    }
if CELERY_BROKER_URL.startswith(("amqp", "pyamqp")):
    # A message is taken once RabbitMQ says so; one that hangs or is blocked says nothing.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"confirm_publish": True, "write_timeout": 5}
    # Messages are wake-ups: not worth a disk. The queues are durable, since RabbitMQ gives up those that are not.
    CELERY_TASK_DEFAULT_DELIVERY_MODE = "transient"
    CELERY_BROKER_HEARTBEAT = 20
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "runs.sweep",
        "schedule": HANDOFF_DURATIONS.sweep,
        # Nothing to catch up after a time without workers: the next sweep finds it all.
        "options": {"queue": "handoff", "expires": max(HANDOFF_DURATIONS.sweep.total_seconds() * 2, 5.0)},
    },
    "ask-configurations": {
        "task": "runs.ask_configurations",
        "schedule": HANDOFF_DURATIONS.configuration_asked,
        "options": {"queue": "handoff", "expires": HANDOFF_DURATIONS.configuration_asked.total_seconds()},
    },
}

# --- Logs ---
LOGGING = logs.configure(process=HANDOFF_ROLE)
