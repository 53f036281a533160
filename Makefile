# `make` lists what there is to make. Each target sets up what it needs; see scripts/setup.sh.

BIN := .venv/bin
JAVA := JAVA_HOME="$$(cat .venv/java_home)"
CODE := $(wildcard src tests scripts benchmarks apps)
ARGS :=

.PHONY: help setup tools studio browser broker postgres demo test hunt cover check docs bench fmt lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv ready: locked packages and a Java for Spark
	@sh scripts/setup.sh

tools: # what needs no Java
	@sh scripts/setup.sh --no-java

studio: tools ## Build the web page that `auroral serve` shows, if its sources changed
	@sh scripts/studio.sh

browser: # what tests of the studio drive
	@sh scripts/browser.sh

demo: setup studio ## Show a running network
	@$(JAVA) $(BIN)/python -m auroral.demo $(ARGS)

broker: setup # what tests of Kafka talk to
	@$(JAVA) sh scripts/kafka.sh

postgres: # what tests of tables talk to
	@sh scripts/postgres.sh

test: broker postgres studio browser ## Run every test (ARGS="tests/io -k csv" for some)
	$(if $(ARGS),,@sh scripts/studio.sh --test)
	$(JAVA) $(BIN)/pytest -n auto --maxprocesses 2 --dist worksteal $(ARGS)

SECONDS ?= 600
hunt: setup ## Try every law with fresh seeds (SECONDS=600, or SEED=n to repeat one round)
	$(JAVA) $(BIN)/python scripts/hunt.py $(if $(SEED),--seed $(SEED),--seconds $(SECONDS)) $(ARGS)

cover: broker postgres studio browser ## Run every test and print which branches none has taken
	$(JAVA) $(BIN)/pytest -n auto --maxprocesses 2 --dist worksteal --cov --cov-report=term $(ARGS)

check: tools ## Check format, lint, types and the import law
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/pytest tests/system/test_import_law.py

docs: tools ## Build the documents as a site in site/, broken links are errors
	$(BIN)/mkdocs build --quiet --strict

NAME ?= micro
bench: setup ## Run a benchmark next to plain Structured Streaming: NAME=micro, oop, cacq, independent, history, qos or server
	@$(JAVA) $(BIN)/auroral bench $(NAME) $(ARGS)

fmt: tools ## Format and mend what can be mended
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

lock: ## Write the lock files from pyproject.toml (UPGRADE=1 for newest versions)
	sh scripts/lock.sh

clean: ## Remove what make made, .venv too
	rm -rf .venv .make dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse site src/auroral/server/static studio/node_modules
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
