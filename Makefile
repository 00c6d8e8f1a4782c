# The two commands that matter are `make up` and `make test`; everything else is listed by `make help`.
# GSHARE_ settings (docs/settings.md) may be given in the environment or behind the target: make up GSHARE_PORT=9000

SHELL := /bin/sh
BIN := .venv/bin
SOURCES := gateway_plugin bench tools template/python3-gshare functions tests
TYPED := gateway_plugin bench tools template/python3-gshare/gshare functions tests

.DEFAULT_GOAL := help
.PHONY: help up down status logs test check fmt runtime dev

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo '  make up FUNCTIONS=resnet50           only these functions of stack.yml'
	@echo '  make up GSHARE_TORCH_INDEX=URL       torch from another package index (a CPU build, cu126, …)'
	@echo '  make test ARGS="-k gateway"          only some tests'

up: runtime ## start everything on this machine and deploy stack.yml
	@$(BIN)/gshare up $(if $(FUNCTIONS),--functions '$(FUNCTIONS)')

down: ## stop everything; state stays in .gshare/
	@if [ -x $(BIN)/gshare ]; then $(BIN)/gshare down; else echo 'Nothing to stop: make up was never run here.'; fi

status: ## show functions, replicas and devices
logs: ## show logs
status logs:
	@if [ -x $(BIN)/gshare ]; then $(BIN)/gshare $@; else echo 'Not installed yet: run make up first.' >&2; exit 1; fi

test: dev ## run all tests
	@$(BIN)/pytest $(ARGS)

check: dev ## lint, formatting, types, architecture, generated documents
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy $(TYPED)
	@$(BIN)/lint-imports
	@$(BIN)/python -m gateway_plugin.docs_pages --check

fmt: dev ## format the code and rewrite the generated documents
	@$(BIN)/ruff check --fix --quiet $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/python -m gateway_plugin.docs_pages --write

runtime:
	@python=$$(tools/find-python) && "$$python" -m tools.venv runtime

dev:
	@python=$$(tools/find-python) && "$$python" -m tools.venv dev
