"""Every setting, loaded and checked once. No other module reads the environment or files for settings."""

from checkstream.config.background import (
    BundleSettings,
    ControlSettings,
    FleetSettings,
    GroundingSettings,
    JobsSettings,
    PseudonymSettings,
    RescoreSettings,
    ToolSettings,
    WebhookSettings,
)
from checkstream.config.checks import warnings
from checkstream.config.control import ControlConfig, load_control
from checkstream.config.described import json_schema
from checkstream.config.files import BUILTIN, BUNDLE, advice_for, bundled, policy_file, read_file
from checkstream.config.load import default_config, load_config, override, read_config
from checkstream.config.own_models import (
    ModelSource,
    OwnModel,
    RemoteSettings,
    read_own_models,
    require_safe_url,
)
from checkstream.config.parts import Address, Secret
from checkstream.config.reference import reference
from checkstream.config.sample import sample
from checkstream.config.secrets import reveal
from checkstream.config.servers import Caller, Limits, Quota, Server, Upstream, parse_address
from checkstream.config.settings import (
    AuditSettings,
    Budget,
    Config,
    ConversationSettings,
    Deadline,
    HoldbackSettings,
    Match,
    RecordSettings,
    RouteSettings,
)
from checkstream.config.telemetry import LogSettings, OtlpSettings, TelemetrySettings, Told
from checkstream.config.trusted import EmbedderKind, EvidenceSettings

__all__ = [
    "BUILTIN",
    "BUNDLE",
    "Address",
    "AuditSettings",
    "Budget",
    "BundleSettings",
    "Caller",
    "Config",
    "ControlConfig",
    "ControlSettings",
    "ConversationSettings",
    "Deadline",
    "EmbedderKind",
    "EvidenceSettings",
    "FleetSettings",
    "GroundingSettings",
    "HoldbackSettings",
    "JobsSettings",
    "Limits",
    "LogSettings",
    "Match",
    "ModelSource",
    "OtlpSettings",
    "OwnModel",
    "PseudonymSettings",
    "Quota",
    "RecordSettings",
    "RemoteSettings",
    "RescoreSettings",
    "RouteSettings",
    "Secret",
    "Server",
    "TelemetrySettings",
    "Told",
    "ToolSettings",
    "Upstream",
    "WebhookSettings",
    "advice_for",
    "bundled",
    "default_config",
    "json_schema",
    "load_config",
    "load_control",
    "override",
    "parse_address",
    "policy_file",
    "read_config",
    "read_file",
    "read_own_models",
    "reference",
    "require_safe_url",
    "reveal",
    "sample",
    "warnings",
]
