# Two commands set everything up and run it: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help setup build demo report test test-crash test-faults bench train-encoder evaluate lint clean

CYCLES ?= 20
# What the demonstration does: a file of config/stations (touch, screw, station).
TASK ?= touch
# What the perception network sees.
TARGET ?= disc
# The floor is measured by the pipeline's benchmark, beside what is compared with it.
BENCHMARKS := loop pipeline replan bandwidth startup reaction throughput episode match hit_rate ageing policy seams services node_kills
ARGUMENTS_node_kills := --kills 2
# -P: the checkout is not put on the path, where launch/ would pass for the launch package.
PYTHON_OF_WORKSPACE := .venv/bin/python -P
# Tests must not hear other robots' nodes, nor be heard; rendering must not need a screen.
TEST_ENVIRONMENT := ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST MUJOCO_GL=egl

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

setup:  ## Install what is missing into .venv and build the workspace in .ws; no work when nothing changed
	@tools/setup.sh

build: setup  ## The same: messages, services and actions are rebuilt when their files changed

demo: setup  ## CYCLES=20 targets to touch, or TASK=screw, TASK=station; report in build/reports/demo (DEMO_ARGS=...)
	@MUJOCO_GL=egl $(PYTHON_OF_WORKSPACE) -m kv_action_router.cli.demo --work $(TASK) --cycles $(CYCLES) $(DEMO_ARGS)

report: setup  ## A run's report made anew from its records (REPORT=build/reports/demo)
	@MUJOCO_GL=egl $(PYTHON_OF_WORKSPACE) -m kv_action_router.cli.report $(REPORT)

test: setup  ## All tests: the fast ones first, then real processes over DDS (PYTEST_ARGS=...)
	@$(TEST_ENVIRONMENT) $(PYTHON_OF_WORKSPACE) -m pytest $(PYTEST_ARGS)

test-faults: setup  ## Faults put into a moving system, one after another; report in build/reports/faults.json
	@MUJOCO_GL=egl .venv/bin/python benchmarks/faults.py --check

test-crash: setup  ## The crash matrix of the cache's file: 200 kills, damage of all kinds (CRASH_ARGS=...)
	@.venv/bin/python test/crash/matrix.py $(CRASH_ARGS)

bench: setup  ## Benchmarks, half an hour; build/reports/bench/report.html (CHECK=1 fails on what falls short)
	@tools/setup.sh bench
	@since=$$(date +%s); failed=0; \
	$(foreach name,$(BENCHMARKS),printf '\n=== %s\n' $(name); \
	  MUJOCO_GL=egl .venv/bin/python benchmarks/$(name).py $(ARGUMENTS_$(name)) $(if $(CHECK),--check) \
	  || failed=1;) \
	.venv/bin/python benchmarks/report.py --since $$since $(if $(CHECK),--check) || failed=1; \
	exit $$failed

train-encoder: setup  ## Train the perception network in all cells of its target, minutes (TRAIN_ARGS=...)
	@tools/setup.sh learning
	@MUJOCO_GL=egl .venv-bench/bin/python -P -m kv_action_router.cli.train_encoder \
	  --target $(TARGET) $(TRAIN_ARGS)

evaluate: setup  ## Errors of the shipped network; build/reports/encoder.json (CHECK=1 fails on what falls short)
	@MUJOCO_GL=egl $(PYTHON_OF_WORKSPACE) -m kv_action_router.cli.evaluate_encoder \
	  --target $(TARGET) $(if $(CHECK),--check) $(EVALUATE_ARGS)

lint:  ## Style, format, types, layers
	@tools/setup.sh lint
	@$(PYTHON_OF_WORKSPACE) -m ruff check .
	@$(PYTHON_OF_WORKSPACE) -m ruff format --check .
	@$(PYTHON_OF_WORKSPACE) -m mypy
	@.venv/bin/lint-imports

clean:  ## Remove .venv, .ws and everything that was built or reported
	@rm -rf .venv .venv-bench .ws build .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache *.egg-info
