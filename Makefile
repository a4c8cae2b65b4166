# The interface of the compendium; `make help` lists what it can do. Works with GNU make 3.81 (macOS) and later.

# The notebooks, in the order of the book; audit/kube is notebooks/audit/kube.ipynb.
NOTEBOOKS := $(shell cat notebooks/chapters.txt)

# Those whose claims are judged on more replications by `make deep`.
STUDIES = $(filter $(patsubst params/deep/%.yaml,%,$(wildcard params/deep/*.yaml params/deep/*/*.yaml)),$(NOTEBOOKS))

# Everything that is made and not committed.
BUILD = build

# `make` sets up .venv by itself from PYTHON. `PY=python make ...` uses an environment that exists (conda, Binder).
PYTHON ?= python3
READY = writable
ifeq ($(strip $(PY)),)
PY = .venv/bin/python
READY += .venv/.ready
endif

# This folder for a shell, whatever its name is.
HERE = '$(subst ','\'',$(CURDIR))'

# The library is that of this folder, also where .venv was copied along with it from another one.
export PYTHONPATH := $(CURDIR)/lib$(if $(PYTHONPATH),:$(PYTHONPATH))

# What decides the results of each run, written down anew only when it changes: make depends on content, not on times.
INPUTS = $(NOTEBOOKS:%=$(BUILD)/inputs/paper/%) $(NOTEBOOKS:%=$(BUILD)/inputs/quick/%) \
  $(STUDIES:%=$(BUILD)/inputs/deep/%) $(BUILD)/inputs/test_thompson

ALL = $(NOTEBOOKS:%=$(BUILD)/%.done)
QUICK = $(NOTEBOOKS:%=$(BUILD)/quick/%.done)
DEEP = $(STUDIES:%=$(BUILD)/deep/%.done)
UNPUBLISHED = $(foreach name,$(NOTEBOOKS),$(if $(wildcard figures/$(name)/manifest.json),,$(BUILD)/$(name).done)) \
  $(foreach name,$(STUDIES),$(if $(wildcard figures/deep/$(name)/manifest.json),,$(BUILD)/deep/$(name).done)) \
  $(if $(and $(wildcard figures/ledger.csv),$(wildcard figures/claims.json),$(wildcard REPRODUCTION.md)),,$(BUILD)/compendium.done)
COMPENDIUM = $(PY) -m compendium --build $(BUILD)

# Python keeps its bytecode, whatever the environment says: without it each test process compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

# What a user has set for other programs decides nothing; lib/compendium/settings.py has the reasons.
unexport PYTHONOPTIMIZE PYTHONSTARTUP PYTHONWARNINGS PYTHONIOENCODING PYTHONHASHSEED PYTHONINSPECT PYTHONVERBOSE
unexport PYTHONDEVMODE PYTHONPROFILEIMPORTTIME MATPLOTLIBRC MPLBACKEND JPY_SESSION_NAME
export PYTHONUTF8 = 1
export MPLCONFIGDIR = $(CURDIR)/$(BUILD)/matplotlib

# To hand these on to a command, make would read them first: what is typed may have a $ in it.
unexport PAPER TITLE

# The last bit of a sum depends on the number of cores and on the widest registers in use: use the same ones everywhere.
export OPENBLAS_NUM_THREADS = 1
ifeq ($(shell uname -m),x86_64)
export OPENBLAS_CORETYPE = Haswell
export NPY_DISABLE_CPU_FEATURES = X86_V4 AVX512_ICL AVX512_SPR
endif

# Jupyter's own environment comes before whatever kernels and settings the user has.
export JUPYTER_PREFER_ENV_PATH = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help all quick test check audits pages proof mutants coverage deep lab site paper refresh new bench lock wheel lowest newest clean distclean FORCE
.DELETE_ON_ERROR:
.SUFFIXES:

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

all: $(BUILD)/compendium.done  ## rebuild figures, tables, ledgers and the README's results at paper scale
	@echo "Up to date: README.md, REPRODUCTION.md, figures and the executed notebooks in $(BUILD)"

quick: $(QUICK)  ## all chapters at a small scale, as a smoke run; results stay in build/quick
	@echo "Up to date: $(NOTEBOOKS:%=$(BUILD)/quick/figures/%)"

# A file's tests, and a notebook's cells, on one worker, in this order.
SPREAD = -n auto --dist loadfile --no-loadscope-reorder
# The first chapter compiles what the others load. Meanwhile the other workers play tests that compile little.
FIRST = $(firstword $(wildcard $(NOTEBOOKS:%=notebooks/%.ipynb)))
LATER = $(wildcard tests/compendium/test_contributing.py tests/compendium/test_lessons.py)
SECOND = $(filter-out $(LATER),$(sort $(wildcard tests/compendium/test_*.py)))
# What takes longest is compared by `make audits`.
LONG = $(wildcard notebooks/tournament.ipynb) $(sort $(wildcard notebooks/audit/*.ipynb))
TESTS = $(FIRST) $(SECOND) $(filter-out $(FIRST) $(LONG),$(sort $(wildcard notebooks/*.ipynb))) $(LATER) \
  $(filter-out tests/compendium tests/__pycache__,$(patsubst %/.,%,$(sort $(wildcard tests/*/. tests/test_*.py))))

# Before many look for the fonts, one does.
COMPARE = mkdir -p $(BUILD) && $(PY) -c "import matplotlib.font_manager" && \
  COSTBANDITS_COMMITTED= IPYTHONDIR=$(HERE)/$(BUILD)/ipython \
  JUPYTER_PATH= $(PY) -m pytest $(SPREAD) --nbval --nbval-current-env

test: $(READY)  ## ruff, the tests but for the longest, and the committed chapters compared with a new run
	$(PY) -m ruff check lib tests benchmarks
	$(COMPARE) --hypothesis-profile=short -m "not proof and not pages" $(TESTS)

audits: $(READY)  ## the audits and the tournament compared with a new run, six minutes; CI does it beside make test
	$(COMPARE) $(LONG)

pages: $(READY)  ## the site built, and looked at in a browser, a few minutes; CI does it beside `make test`
	$(PY) -m pytest $(SPREAD) -m pages tests/compendium

check: $(READY)  ## the fast part of `make test`, about a minute, for every save
	$(PY) -m ruff check lib tests benchmarks
	$(PY) -m pytest $(SPREAD) --hypothesis-profile=short -m "not slow and not pages and not proof" tests

proof: $(READY)  ## each night: the longest tests, pages, audits, mutants, coverage and lowest; more than an hour
	$(PY) -m pytest $(SPREAD) -m "proof and not pages" tests
	$(MAKE) pages
	$(MAKE) audits
	$(MAKE) mutants
	$(MAKE) coverage
	$(MAKE) lowest

mutants: $(READY)  ## plant errors in copies of the library, one at a time: does a test catch each? half an hour or more
	$(PY) tests/mutants $(ONLY)

# Compiled lines are not seen: some tests play them in plain Python by themselves, others are run once more for this.
coverage: $(READY)  ## which lines of the library the tests run: refused below 99.5 %; half an hour
	@rm -rf $(BUILD)/coverage && mkdir -p $(BUILD)/coverage
	$(MEASURED) $(SPREAD) tests
	NUMBA_DISABLE_JIT=1 $(MEASURED) $(SPREAD) -k "$(PLAIN)" tests/theory tests/policies tests/engine/test_engine.py
	NUMBA_DISABLE_JIT=1 $(MEASURED) $(SPREAD) -m "not slow" -k "$(PLAIN_QUICK)" tests/policies
	@$(PY) -m coverage combine --quiet && $(PY) -m coverage report

MEASURED = COVERAGE_FILE=$(HERE)/$(BUILD)/coverage/data $(PY) -m coverage run -m pytest
# Tests that are quick without the compiler, too, and play the rules and kernels line by line.
PLAIN = by_hand or best_base or bayes_regret or could_break or out_of_range or faults_name \
  or (optimum or knapsack) and not transcriptions
PLAIN_QUICK = pull_for_pull or kl_ucb or known_cost or cost_subsidy

deep: $(BUILD)/deep/thompson.done $(DEEP)  ## judge the claims on more runs, mostly 2,000; hours, may be interrupted
	@$(PY) -m compendium.report
	@echo "Up to date: figures/deep, README.md and REPRODUCTION.md"

lab: $(READY)  ## JupyterLab, with a page that says where to begin; in a container make lab OPTIONS=--allow-root
	JUPYTER_CONFIG_PATH=$(HERE)"/lib/compendium$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
	  $(PY) -m jupyterlab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/README.md \
	  --FileContentsManager.pre_save_hook=compendium.lab.before_saving $(OPTIONS)

site: $(READY)  ## the reading site in build/site: chapters, ledger, results, library
	@$(PY) -m compendium.site --build $(BUILD)

paper: $(READY)  ## the report for a journal, with the numbers of the committed results, as a page in build/paper
	@$(PY) -m compendium.paper --build $(BUILD)

refresh: $(READY)  ## re-execute the committed notebooks in place
	@$(COMPENDIUM) refresh

new: $(READY)  ## lay out the chapter of another paper: make new PAPER=name TITLE="what it asks"
	@$(if $(and $(value PAPER),$(value TITLE)),,$(error It needs a name and a title: make new PAPER=name TITLE="what it asks"))
	@$(COMPENDIUM) new '$(subst ','\'',$(value PAPER))' --title '$(subst ','\'',$(value TITLE))'

bench: $(READY)  ## the benchmark table, what a million replications would cost, and what `make all` last cost
	@$(PY) benchmarks/speed.py
	@$(PY) benchmarks/scaling.py
	@$(PY) benchmarks/rebuild.py

# With its extras: where hashes are checked, pip asks for the newest version of a package whose extra is not locked.
lock: writable  ## resolve requirements.in again into requirements.lock
	@command -v uv >/dev/null || test -x $(BUILD)/uv/bin/uv || \
	  { $(PYTHON) -m venv $(BUILD)/uv && $(BUILD)/uv/bin/python -m pip install -qq uv; }
	cp requirements.lock requirements.lock.part
	PATH=$(HERE)"/$(BUILD)/uv/bin:$$PATH" uv pip compile requirements.in --universal --python-version 3.11 \
	  --fork-strategy fewest --no-strip-extras --generate-hashes --custom-compile-command "make lock" \
	  --quiet --output-file requirements.lock.part
	mv requirements.lock.part requirements.lock

wheel: $(READY)  ## build costbandits as a wheel, and play the README's example where nothing else is installed
	rm -rf $(BUILD)/wheel $(BUILD)/lib
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(BUILD)/wheel .
	@sed -nE 's/\[.*\]//; s/^([a-z0-9][^\\]*[^\\ ]) *\\?$$/\1/p' requirements.lock > $(BUILD)/wheel/locked.txt
	$(call ALONE,$(BUILD)/wheel/venv,-c $(BUILD)/wheel/locked.txt $(BUILD)/wheel/*.whl)
	cd $(BUILD)/wheel && venv/bin/python -I $(HERE)/tests/wheel.py

# Numba keeps one compiled version of a file, so these keep theirs elsewhere. PYTHON has to be one that they exist for.
# An older NumPy has other names for the features of a processor.
lowest: writable  ## the tests of the library on the oldest Numba, NumPy, ... that pyproject.toml allows; minutes
	$(call TESTED_WITH,$(BUILD)/lowest,s/.*"\(.*\)>=\(.*\)".*/\1==\2/p)

newest: writable  ## the same on the newest that there are: what a release of theirs has broken
	$(call TESTED_WITH,$(BUILD)/newest,s/.*"\(.*\)>=.*".*/\1/p)

TESTED_WITH = rm -rf $(1) && ($(call ALONE,$(1),$$(sed -n '/^dependencies/,/^]/$(2)' pyproject.toml) $(TOOLS))) && \
  env -u NPY_DISABLE_CPU_FEATURES NUMBA_CACHE_DIR=$(HERE)/$(1)/numba $(1)/bin/python -m pytest $(SPREAD) \
  $(patsubst %,tests/%,environments engine policies fast studies theory analysis)
TOOLS = $$(sed -nE 's/^((hypothesis|mpmath|pytest|pytest-xdist)==[^ ]*).*/\1/p' requirements.lock)
# A new environment with these packages and nothing else; what lies on PYTHONPATH does not count as installed.
ALONE = export PYTHONPATH= && $(PYTHON) -m venv $(1) && { { command -v uv >/dev/null && \
  uv pip install --quiet --python $(1)/bin/python $(2); } || $(1)/bin/python -m pip install -qq $(2); }

clean:  ## remove build, with the store of finished replications
	rm -rf $(BUILD)

distclean: clean  ## remove .venv and all caches too
	rm -rf .venv .ruff_cache .hypothesis lib/costbandits.egg-info
	find $(wildcard benchmarks lib notebooks tests) -name __pycache__ -prune -exec rm -rf {} + \
	  -o -name .ipynb_checkpoints -prune -exec rm -rf {} +

# One call for all of them; each is as new as its last change.
$(BUILD)/inputs/checked: FORCE | $(READY)
	@$(PY) lib/compendium/inputs.py $(BUILD)/inputs $(NOTEBOOKS)
$(INPUTS): $(BUILD)/inputs/checked
	@:

# The run itself makes the stamp, as old as its beginning: what is edited meanwhile is newer, whoever notices it. It is a
# command without a shell around it, so that a signal that ends make reaches it.
RUN = @$(COMPENDIUM) run $* --profile $(1) --among $(2) --done $@

$(ALL): $(BUILD)/%.done: $(BUILD)/inputs/paper/% | $(READY)
	$(call RUN,paper,$(NOTEBOOKS))

# A paper's own notebook reads the tables of its audit.
$(foreach audit,$(filter audit/%,$(NOTEBOOKS)),$(eval $(BUILD)/$(audit:audit/%=%).done: $(BUILD)/$(audit).done))

$(QUICK): $(BUILD)/quick/%.done: $(BUILD)/inputs/quick/% | $(READY)
	$(call RUN,quick,$(NOTEBOOKS))

# The store is that of `all`: the replications that it has played are not played again.
$(DEEP): $(BUILD)/deep/%.done: $(BUILD)/inputs/deep/% | $(READY)
	$(call RUN,deep,$(STUDIES))

# That fast Thompson sampling is exact, tested at 30 times the usual size.
$(BUILD)/deep/thompson.done: $(BUILD)/inputs/test_thompson | $(READY)
	@mkdir -p $(@D) && touch $@.part
	COSTBANDITS_DEEP=30 $(PY) -m pytest -v tests/policies/test_thompson.py
	@mv $@.part $@

# The report writes some of the files on which this stamp depends, so the stamp is touched after it.
$(BUILD)/compendium.done: $(ALL) README.md lib/compendium/report.py notebooks/chapters.txt \
  $(wildcard $(addprefix lib/compendium/,outcome.py paper.py typography.py prose/*.md) REPRODUCTION.md figures/ledger.csv \
  figures/claims.json paper/paper.md benchmarks/BENCHMARKS.txt \
  $(addsuffix /manifest.json,figures/* figures/audit/* figures/deep/* figures/deep/audit/*))
	@$(PY) -m compendium.report
	@touch $@

# The guide to policies of one's own reads what the tournament has published.
$(filter %/extend.done,$(ALL)): $(filter %/tournament.done,$(ALL))

$(UNPUBLISHED): FORCE

.DEFAULT:
	@echo "There is no target $@. make help lists the commands; make $(BUILD)/<chapter>.done plays one of the" \
	  "chapters $(NOTEBOOKS), make $(BUILD)/quick/<chapter>.done at a small scale." >&2; exit 1

# Everything that is made is made in this folder, and so are the bytecode and the caches of what runs.
.PHONY: writable
writable:
	@{ mkdir -p $(BUILD) && test -w $(BUILD) && test -w .; } 2>/dev/null || { echo "$(LOCKED)" >&2; exit 1; }

LOCKED = Nothing can be written to "$(HERE)", where make puts what it makes: copy this folder to a place of your own, and \
  run make there

# .venv is brought in line with the lock. While that is under way a mark stands in it: killed, it is made anew.
.venv/.ready: requirements.lock | writable
	@command -v $(PYTHON) >/dev/null || { echo "$(NEEDED); there is no $(PYTHON). $(ADVICE)" >&2; exit 1; }
	@$(PYTHON) $(RECENT) || \
	  { echo "$(NEEDED); $(PYTHON) is $$($(PYTHON) --version 2>&1 | sed 's/Python //'). $(ADVICE)" >&2; exit 1; }
	@echo "Setting up .venv from requirements.lock; once, for a minute or two ..."
	@{ test ! -e .venv/.unfinished && .venv/bin/python $(RECENT) 2>/dev/null; } || rm -rf .venv
	@mkdir -p .venv && touch .venv/.unfinished && { test -x .venv/bin/python || $(PYTHON) -m venv .venv; }
	@{ command -v uv >/dev/null && $(call INSTALL,uv pip install --quiet --python .venv/bin/python); } || \
	  { $(call INSTALL,.venv/bin/python -m pip install -qq); }
	@rm .venv/.unfinished && touch $@

RECENT = -c 'import sys; sys.exit(sys.version_info < (3, 11))'
NEEDED = costbandits needs Python 3.11 or newer
ADVICE = Try PYTHON=python3.12 make $(MAKECMDGOALS)
# What lies on the user's PYTHONPATH does not count as installed.
INSTALL = export PYTHONPATH= && $(1) --require-hashes -r requirements.lock && $(1) --no-deps --no-build-isolation -e .
