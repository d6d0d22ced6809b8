from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import (
    Config,
    Secret,
    default_config,
    load_config,
    override,
    parse_address,
    read_config,
    reveal,
    warnings,
)
from checkstream.config.default import PASSED_PATHS
from checkstream.core.wire.places import PLACES
from checkstream.errors import ConfigError

GOOD = """
upstreams:
  local: {url: http://127.0.0.1:8000/v1, headers: {authorization: {env: LLM_API_KEY, prefix: "Bearer "}}}
routes:
  - name: models
    match: {path: /v1/models, method: GET}
    upstream: local
    pass: true
"""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-1")


def faults(text: str, base: Path = Path("/nowhere")) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_config("c.yaml", text, base)
    return [f"{fault.line}:{fault.column}: {fault.reason}; {fault.advice}" for fault in caught.value.faults]


ROUTE = "upstreams: {u: {url: 'http://h'}}\nroutes: [{name: r, upstream: u, policies: ['builtin:default'], %s}]\n"


def test_a_route_speaks_what_its_path_says_or_what_it_says_itself() -> None:
    known = read_config("c.yaml", ROUTE % "match: {path: '/openai/deployments/{model}/chat/completions'}", Path("/n"))
    own = read_config("c.yaml", ROUTE % "match: {path: '/{tenant}/chat'}, surface: openai.chat", Path("/nowhere"))
    other = read_config("c.yaml", ROUTE % "match: {path: /v1/completions}, surface: openai.chat", Path("/nowhere"))
    assert [config.routes[0].api for config in (known, own, other)] == ["openai.chat"] * 3
    (fault,) = faults(ROUTE % "match: {path: /chat}")
    assert "nobody knows which API is spoken at `/chat`; add `surface:` with one of openai.chat, " in fault
    (fault,) = faults(ROUTE % "match: {path: /chat}, surface: openai.chats")
    assert "openai.chat" in fault
    (fault,) = faults(ROUTE % "match: {path: '/a{b}/chat'}, surface: openai.chat")
    assert "stands for a whole part of a path" in fault
    (fault,) = faults("upstreams: {u: {url: 'http://h'}}\nroutes: [{name: r, upstream: u, pass: true, "
                      "match: {path: /chat}, surface: openai.chat}]\n")  # fmt: skip
    assert "speaks no `surface`" in fault


def test_answers_without_text_can_not_be_scored() -> None:
    route = "{name: e, match: {path: /v1/embeddings}, upstream: u, policies: ['builtin:default'], grounding: {}}"
    (fault,) = faults(f"upstreams: {{u: {{url: 'http://h'}}}}\nroutes: [{route}]\n")
    assert "are figures, so there is nothing to score; remove `grounding`" in fault


def test_a_good_file_has_its_values_and_defaults(tmp_path: Path) -> None:
    file = tmp_path / "checkstream.yaml"
    file.write_text(GOOD)
    config = load_config(file)
    assert config.upstreams["local"].root == "http://127.0.0.1:8000"
    assert config.server.limits.streams == 400
    assert config.audit.dir == str(tmp_path / "var/audit")
    secret = config.upstreams["local"].headers["authorization"]
    assert isinstance(secret, Secret)
    assert reveal(secret) == "Bearer sk-1"
    assert "sk-1" not in repr(config)
    assert warnings(config) == ["server.callers is none: every caller counts as authenticated"]


def test_every_fault_is_reported_at_once_with_its_place() -> None:
    found = faults(
        """server:
  limits: {streams: 0, body_bytes: many}
  lisen: 127.0.0.1:1
upstreams:
  local: {url: "ftp://x", connect_ms: 1.5}
routes:
  - {name: a, match: {path: v1}, upstream: local, policies: ["builtin:default"]}
  - {name: b, match: {path: /v1/completions}, upstream: local, holdback: {tokens: 2, calm_tokens: 3}, pass: maybe}
"""
    )
    assert found == [
        "2:21: server.limits.streams: expected a whole number >= 1, got `0`; ",
        "2:36: server.limits.body_bytes: expected a whole number, got `many`; ",
        "3:3: server.lisen: not known here; did you mean `listen`?",
        "5:39: upstreams.local.connect_ms: expected a whole number, got `1.5`; ",
        "7:22: routes[0].match: `v1` is not a path; begin it with `/`; ",
        "8:74: routes[1].holdback: `calm_tokens` 3 is more than `tokens` 2; lower it; ",
        "8:109: routes[1].pass: expected true or false, got `maybe`; ",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "twice"),
        ("a: &x 1\n", "anchor"),
        ("a: *x\n", "alias"),
        ("server: {behind_gateway: yes}\n", "boolean"),
        ("server: {limits: {streams: 010}}\n", "zero"),
        ("server: !!python/object:os.system x\n", "tag"),
        ("--- {}\n--- {}\n", "second"),
        ("server: [\n", "not valid YAML"),
        ("server: \x00\n", "character"),
        ("[" * 100, "nested"),
        ("", "no routes"),
        ("- 1\n", "expected a mapping"),
        ("server: {tls: {cert: a, key: b}}\n", "server.tls.cert: not known here"),
        ("server: {workers: 0}\n", "workers"),
        ("server: {workers: 65}\n", "workers"),
        ("server: {workers: all}\n", "server.workers"),
        (
            (
                "server: {workers: auto}\nupstreams: {u: {url: 'http://h'}}\nroutes: [{name: t, match: {path: /mcp}, "
                "surface: mcp, upstream: u, policies: ['builtin:default']}]\n"
            ),
            "`surface: mcp` (route `t`) needs `workers: 1`",
        ),
        ("server: {callers: {jwt: {}}}\n", "server.callers.jwt.issuer: missing"),
        ("routes: [{holdback: {by_language: {fi: -3}}}]\n", "by_language.fi"),
        ("routes: [{holdback: {by_language: {fi: 65}}}]\n", "`window` 64 is less than the 65 of `fi`; raise it"),
        ("routes: [{holdback: {check_every: 65}}]\n", "`window` 64 is less than `check_every` 65; raise it"),
        ("routes: [{holdback: {by_language: {xx: 3}}}]\n", "`xx` is no language that can be told; known: ar, "),
        ("routes: [{holdback: {by_language: [fi]}}]\n", "by_language"),
        ("routes: [{grounding: {block: 70}}]\n", "`block` needs `inline: true`"),
        ("routes: [{grounding: {inline: true, block: 0}}]\n", "block"),
        ("routes: [{grounding: {inline: true, inline_ms: 0}}]\n", "inline_ms"),
        ("routes: [{grounding: {sample: 2}}]\n", "grounding.sample"),
        ("routes: [{grounding: {profiles: []}}]\n", "grounding.profiles"),
        ("routes: [{grounding: {profiles: [rag, rag]}}]\n", "names one twice"),
        ("routes: [{grounding: {profiles: [oracle]}}]\n", "oracle"),
        ("verifier: {kind: judge, url: 'http://a/v1'}\n", "a judge needs `url` and `model`"),
        ("verifier: {kind: judge, model: m}\n", "a judge needs `url` and `model`"),
        ("verifier: {model: m}\n", "has its own model"),
        ("verifier: {kind: judge, model: m, url: 'ftp://a'}\n", "`ftp://a` is no url"),
        ("verifier: {kind: judge, model: m, url: 'http://a:99999'}\n", "is no url"),
        ("verifier: {kind: judge, model: m, url: 'http://u:p@a'}\n", "holds a password"),
        ("verifier: {kind: judge, model: m, url: 'http://a', key: {env: NOT_THERE}}\n", "`NOT_THERE` is not set"),
        ("routes: [{grounding: {on_high: [page]}}]\n", "on_high"),
        ("routes: [{grounding: {on_high: [log, log]}}]\n", "names something twice"),
        ("routes: [{grounding: {on_high: [webhook]}}]\n", "belong together"),
        ("routes: [{grounding: {webhook: {url: 'https://a.b/c', secret: {env: X}}}}]\n", "belong together"),
        ("routes: [{pass: true, name: a, match: {path: /a}, upstream: b, grounding: {}}]\n", "none can be scored"),
        ("routes: [{budget: {on_exceeded: drop}}]\n", "on_exceeded"),
        ("routes: [{match: {path: /v1/*/x}}]\n", "at the end only"),
        ("jobs: {store: x}\n", "`x` is no store"),
        ("jobs: {store: 'sqlite:'}\n", "names no file"),
        ("jobs: {store: 'sqlite::memory:'}\n", "names no file"),
        ("jobs: {store: 'redis://'}\n", "is no store"),
        ("jobs: {store: 'redis://h:99999'}\n", "is no store"),
        ("jobs: {store: 'redis://:pw@h:6379'}\n", "holds a password"),
        ("jobs: {store: 'http://h'}\n", "is no store"),
        ("jobs: {password: {env: X}}\n", "has no password"),
        ("jobs: {full: block}\n", "jobs.full"),
        ("jobs: {capacity: 0}\n", "jobs.capacity"),
        ("record: {sample: 0.5}\n", "`sample` is given without `dir`"),
        ("record: {dir: x, sample: 1.5}\n", "record.sample"),
        ("record: {dir: x, text: hashed}\n", "did you mean `masked`?"),
        ("record: {dir: x, retention_days: 0}\n", "record.retention_days"),
        ("telemetry: {otlp: {}}\n", "endpoint"),
        ("telemetry: {otlp: {endpoint: '127.0.0.1:4318'}}\n", "is no collector"),
        ("telemetry: {otlp: {endpoint: 'grpc://h:4317'}}\n", "is no collector"),
        ("telemetry: {otlp: {endpoint: 'http://u:p@h:4318'}}\n", "holds a password"),
        ("telemetry: {otlp: {endpoint: 'http://h:4318/v1/traces'}}\n", "leave `/v1/...` out"),
        ("telemetry: {otlp: {endpoint: 'http://h:4318', sample: 2}}\n", "telemetry.otlp.sample"),
        ("telemetry: {otlp: {endpoint: 'http://h:4318', headers: {a: text}}}\n", "telemetry.otlp.headers"),
        ("server: {tls: {}}\n", "server.tls.certificate: missing"),
        ("server: {listen: 8080}\n", "expected text"),
        ("server: {listen: localhost}\n", "not an address"),
        ("server: {listen: ::1:80}\n", "brackets"),
        ("server: {listen: '0.0.0.0:80'}\n", "behind_gateway"),
        ("server: {admin: '0.0.0.0:80'}\n", "admin_token"),
        ("server: {callers: []}\n", "nobody"),
        ("server: {callers: [{name: a, key: {}}]}\n", "either `env` or `file`"),
        ("upstreams: {a: {url: 'http://u:p@h'}}\n", "password"),
        ("upstreams: {a: {url: 'http://h', headers: {'a b': c}}}\n", "header name"),
        ("upstreams: {a: {url: 'http://h', headers: {a: \"b\\nc\"}}}\n", "line breaks"),
        ("upstreams: {a: {url: 'http://h', headers: {a: b, A: c}}}\n", "twice"),
        ("upstreams: {a: {url: 'http://h', headers: {Content-Length: '3'}}}\n", "by the proxy itself"),
        ("upstreams: {a: {url: 'http://h', headers: {a: {env: HOME, prefix: \"b\\n\"}}}}\n", "`prefix` holds"),
        ("upstreams: {a: {url: 'http://h:99999'}}\n", "not the root"),
        ("upstreams: {a: {url: 'https://h/openai/v1/chat/completions/'}}\n", "write its root, `https://h/openai`"),
        ("upstreams: {a: {url: 'http://h:1/gw/v1/messages'}}\n", "write its root, `http://h:1/gw`"),
        ("upstreams: {a: {url: 'http://h/api/chat'}}\n", "write its root, `http://h`"),
        ("upstreams: {a: {url: 'http://[::1'}}\n", "not the root"),
        ("upstreams: {a: {url: 'http://h/a b'}}\n", "not the root"),
        ("server: {callers: [{name: a, key: {env: HOME}}, {name: b, key: {env: HOME}}]}\n", "the same key"),
    ],
)
def test_what_is_refused_says_why(text: str, said: str) -> None:
    assert said in "\n".join(faults(text))


def test_faults_between_the_parts(tmp_path: Path) -> None:
    found = "\n".join(
        faults(
            """server: {callers: [{name: a, key: {env: NOT_SET_ANYWHERE}}]}
routes:
  - {name: a, match: {path: /v1/chat/completions}, upstream: gone, policies: [nofile.yaml]}
  - {name: a, match: {path: /v1/images, method: GET}, upstream: gone, policies: [nofile.yaml]}
""",
            tmp_path,
        )
    )
    for said in ("`gone` is not defined", "stands twice", "is no policy file", "nobody knows", "NOT_SET_ANYWHERE"):
        assert said in found


def test_what_is_wrong_between_the_parts_is_reported_beside_other_faults() -> None:
    found = faults(
        """server: {lisen: "127.0.0.1:1"}
upstreams:
  broken: {url: 3}
  sound: {url: "http://h", headers: {authorization: {env: NOT_SET_ANYWHERE}}}
routes:
  - {name: a, match: {path: v1}, upstream: gone, policies: ["builtin:default"]}
  - {name: b, match: {path: /v1/completions}, upstream: broken, policies: [nofile.yaml]}
  - {name: b, match: {path: /v1/completions}, upstream: gone, policies: ["builtin:default"]}
"""
    )
    assert [fault.split(";")[0].replace("/nowhere/", "") for fault in found] == [
        "1:10: server.lisen: not known here",
        "3:17: upstreams.broken.url: expected text, got `3`",
        "4:53: environment variable `NOT_SET_ANYWHERE` is not set",
        "6:22: routes[0].match: `v1` is not a path",
        "7:76: `nofile.yaml` is no policy file",
        "8:12: the route `b` stands twice",
        "8:57: the upstream `gone` is not defined",
    ]


def test_what_a_route_that_blocks_does_not_block_is_a_warning() -> None:
    text = """
upstreams: {a: {url: http://x}}
routes:
  - name: r
    match: {path: /v1/chat/completions}
    upstream: a
    policies: ["builtin:default"]
    grounding: {inline: true, block: 70}
"""
    found = warnings(read_config("c.yaml", text, Path("/")))
    assert any("blocks whole answers of high risk only" in warning for warning in found)
    late = "route `r` blocks whole answers and has fail_mode open: one that can't be assessed in time goes out"
    assert late not in found
    assert late in warnings(read_config("c.yaml", text + "    fail_mode: open\n", Path("/")))
    passing = text.replace(", block: 70", "") + "    fail_mode: open\n"
    assert late not in warnings(read_config("c.yaml", passing, Path("/")))


def test_a_route_that_is_never_taken_is_a_warning() -> None:
    chat = "upstream: u, policies: ['builtin:default']}\n"
    more = "  - {name: late, match: {path: /v1/chat/completions, model: gpt-4}, " + chat
    text = (
        "upstreams: {u: {url: 'http://h'}}\nroutes:\n"
        "  - {name: first, match: {path: /v1/chat/completions, model: 'gpt-*'}, " + chat
    )
    said = "route `late` is never taken: `first` stands before it and takes all that it would"
    assert said in warnings(read_config("c.yaml", text + more, Path("/nowhere")))
    assert said not in warnings(read_config("c.yaml", text + more.replace("gpt-4", "'*'"), Path("/nowhere")))


def test_what_is_not_there_yet_may_be_null() -> None:
    config = read_config("c.yaml", GOOD + "server: {tls: null}\ntelemetry: {otlp: null}\n", Path())
    assert config.telemetry.log == "auto"
    assert config.telemetry.otlp is None


def test_a_secret_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k1\n")
    text = GOOD + "server: {callers: [{name: app, key: {file: key}}]}\n"
    config = read_config("c.yaml", text, tmp_path)
    key = config.server.known[0].key
    assert key is not None
    assert reveal(key) == "k1"


def test_an_unreadable_file_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(tmp_path / "none.yaml")


def test_one_argument_is_enough() -> None:
    config = default_config("http://host:8000/v1/")
    assert config.upstreams["default"].root == "http://host:8000"
    guarded, passed = list(PLACES), [path for path, _ in PASSED_PATHS.values()]
    assert [route.match.path for route in config.routes] == guarded + passed
    assert [route.match.path for route in config.routes if route.pass_] == passed
    bases = {path.removesuffix("/chat/completions") for path in PLACES if path.endswith("/chat/completions")}
    assert {base for base in bases if "{" not in base} == {path[:-7] for path in passed if path.endswith("/models")}
    assert override(config, listen="127.0.0.1:0").server.listen == "127.0.0.1:0"
    with pytest.raises(ConfigError, match="behind_gateway"):
        override(config, listen="0.0.0.0:80")
    with pytest.raises(ConfigError, match="not the root"):
        default_config("host:8000")


@pytest.mark.parametrize(
    ("path", "method", "refused"),
    [
        ("/v1/*", "POST", True),
        ("/v1/c*", "POST", True),
        ("/v1/embeddings*", "POST", True),
        ("/*", "POST", True),
        ("/openai/deployments/*", "POST", True),
        ("/openai/deployments/gpt-5/*", "POST", True),
        ("/openai/deployments/gpt-5/images/*", "POST", False),
        ("/v1/*", "GET", False),
        ("/v1/images/*", "POST", False),
    ],
)
def test_g17_a_beginning_of_paths_passes_nothing_unguarded_that_can_be_guarded(
    path: str, method: str, *, refused: bool
) -> None:
    match = f"{{path: '{path}', method: {method}}}"
    text = f"upstreams: {{u: {{url: 'http://h'}}}}\nroutes: [{{name: p, match: {match}, upstream: u, pass: true}}]\n"
    if refused:
        assert any("would also pass `/" in fault for fault in faults(text))
    else:
        assert read_config("c.yaml", text, Path("/nowhere")).routes[0].match.path == path


def test_a_guarded_route_names_one_path() -> None:
    text = (
        "upstreams: {u: {url: 'http://h'}}\nroutes: [{name: g, match: {path: '/v1/c*'}, upstream: u, policies: [x]}]\n"
    )
    assert any("a guarded route speaks one" in fault for fault in faults(text))


def test_addresses() -> None:
    assert parse_address("[::1]:0").loopback
    assert str(parse_address("[::1]:80")) == "[::1]:80"
    assert parse_address("localhost:1").loopback
    assert not parse_address("example.org:1").loopback


def test_the_schema_names_every_setting() -> None:
    schema = msgspec.json.schema(Config)
    assert "held_bytes_per_stream" in schema["$defs"]["Limits"]["properties"]
    assert "pass" in schema["$defs"]["RouteSettings"]["properties"]


YAML_BITS = [
    "server",
    ":",
    " ",
    "\n",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "routes",
    "1",
    "'",
    '"',
    "&a",
    "*a",
    "!!x",
    "|",
    "#",
    "é",
    "\t",
]


@given(st.lists(st.sampled_from(YAML_BITS), max_size=40).map("".join) | st.text(max_size=80) | st.binary(max_size=80))
def test_hostile_files_give_config_errors_only(content: str | bytes) -> None:
    with pytest.raises(ConfigError):
        read_config("c.yaml", content, Path("/nowhere"))


def test_what_an_upstream_can_do_is_of_a_known_kind_and_said_once() -> None:
    def upstream(can: str) -> str:
        return GOOD.replace('prefix: "Bearer "}}}', f'prefix: "Bearer "}}}}, can: {can}}}')

    config = read_config("c.yaml", upstream("[continue, logit_bias]"), Path("/nowhere"))
    assert config.upstreams["local"].can == ("continue", "logit_bias")
    assert read_config("c.yaml", GOOD, Path("/nowhere")).upstreams["local"].can == ()
    for can, fault in (
        ("[continu]", "upstreams.local.can[0]: `continu` is not known here; did you mean `continue`?"),
        ("[logit_bias, 7]", "upstreams.local.can[1]: `7` is not known here; known: continue, bad_words"),
        ("continue", "upstreams.local.can: expected a list"),
        ("{continue: true}", "upstreams.local.can: expected a list"),
        ("[grammar, continue, grammar]", "upstreams.local: `can` names something twice; name it once"),
    ):
        (found,) = faults(upstream(can))
        assert found.partition(": ")[2].startswith(fault)


VERIFYING = """upstreams: {a: {url: "http://h"}}
routes:
  - name: rag
    match: {path: /v1/completions}
    upstream: a
    policies: ["builtin:default"]
    grounding: {profiles: [rag]}
  - {name: risk, match: {path: /v1/chat/completions}, upstream: a, policies: ["builtin:default"], grounding: {}}
"""


@pytest.mark.parametrize(("said", "inline"), [("true", True), (" TRUE ", True), ("0", False), ("false", False)])
def test_the_environment_switches_rag_verification_and_nothing_else(
    said: str, inline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_VERIFICATION", said)
    file = tmp_path / "checkstream.yaml"
    file.write_text(VERIFYING)
    rag, risk = (route.grounding for route in load_config(file).routes)
    assert rag is not None
    assert risk is not None
    assert (rag.inline, risk.inline) == (inline, False)


@pytest.mark.parametrize("said", ["perhaps", "", "yes\n\x1b[2J"])
def test_an_environment_that_says_neither_yes_nor_no_is_refused(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_VERIFICATION", said)
    file = tmp_path / "checkstream.yaml"
    file.write_text(VERIFYING)
    with pytest.raises(ConfigError, match="ENABLE_VERIFICATION"):
        load_config(file)


def test_the_environment_cant_take_a_blocking_routes_verification_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_VERIFICATION", "false")
    file = tmp_path / "checkstream.yaml"
    file.write_text(VERIFYING.replace("{profiles: [rag]}", "{profiles: [rag], inline: true, block: 70}"))
    with pytest.raises(ConfigError, match="remove `block`"):
        load_config(file)


def test_several_processes_serve_tools_where_they_share_what_is_known_of_them() -> None:
    text = (
        "server: {workers: 2}\nupstreams: {u: {url: 'http://h'}}\nroutes: [{name: t, match: {path: /mcp}, "
        "surface: mcp, upstream: u, policies: ['builtin:default']}]\naudit: {dir: a}\n"
    )
    with pytest.raises(ConfigError, match="needs `workers: 1`, or `tools`"):
        read_config("c.yaml", text, Path("/"))
    shared = text + "tools: {secret: {env: PATH}}\nrecord: {dir: r, sample: 1}\n"
    config = read_config("c.yaml", shared, Path("/"))
    assert any("so `t` is not recorded" in each for each in warnings(config))


def test_names_and_conversations_have_files_of_their_own() -> None:
    text = (
        "upstreams: {u: {url: 'http://h'}}\nroutes: [{name: c, match: {path: /v1/chat/completions}, upstream: u, "
        "policies: ['builtin:default']}]\npseudonyms: {secret: {env: PATH}, store: 'sqlite:a.db'}\n"
        "conversations: {secret: {env: PATH}, store: 'sqlite:b.db'}\n"
    )
    read_config("c.yaml", text, Path("/"))
    with pytest.raises(ConfigError, match="give each a file of its own"):
        read_config("c.yaml", text.replace("b.db", "a.db"), Path("/"))
