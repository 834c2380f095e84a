# Short commands for all common tasks. Each target first installs the system packages that are missing.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

.PHONY: docs demo quick check soak bench stragglers paper1 paper2 paper3 paper4 paper5 map page watch compiler dsmc shared foresight faults install fuzz tidy format clean packages release

demo: packages        ## build, and solve a real planning problem on unequal workers
	tools/demo

quick: packages       ## the quick tests under sanitizers, for use while working
	tools/check quick

check: packages       ## everything that must pass before a change goes in: builds, tests, sanitizers, fuzzing
	FUZZ_SECONDS=$(FUZZ_SECONDS) tools/check

soak: packages        ## docs/results/soak.md: all tests at full size, sweeps, series of failures, long fuzzing; hours
	tools/check soak

bench: release        ## Kilter's costs and efficiency
	build/release/bench/kilter-bench
	TRANSPORTS=ipc KINDS=sleep TASKS_MS=0.5 BYTES="8 100000" WORKERS="2 8 32" ENGINES=events FOUND=build/foresight-short OUTPUT=/dev/stdout tools/foresight

stragglers: release   ## docs/results/stragglers.md: AUTO compared with the best of the other policies on random platforms
	tools/stragglers

paper1: release       ## docs/results/paper1.md: the first paper's figures and tables, and further clusters
	tools/paper1

paper2: release       ## docs/results/paper2.md: loops whose rows move between ranks, on two real cores and simulated; half an hour
	tools/paper2

paper3: release       ## docs/results/paper3.md: planning on workers that differ and come and go; an hour
	tools/paper3

paper4: release       ## docs/results/paper4.md: mutual help without a centre, simulated with up to 65,536 peers; five minutes
	tools/paper4

paper5: release       ## docs/results/paper5.md: kept runs: checkpoints, restarts, faults, and hosts that others use; as root; an hour and a half
	tools/paper5

map: release          ## docs/results/map.md: kilter map beside xargs and GNU parallel, and its time left; ten minutes
	tools/map

watch: release        ## docs/results/watch.md: what kilter watch costs, and whether its forecasts come true; ten minutes
	tools/watch

page: release         ## docs/results/report.md and docs/pictures: size and speed of the page of a run, and pictures of it; a minute
	tools/page bench build/release/cli/kilter docs/results/report.md
	tools/page-pictures

compiler: release     ## docs/results/compiler.md: verdicts of kilter cc on 10,000 random nests, and its programs under random moves; half an hour
	tools/compiler

dsmc: release         ## docs/results/dsmc.md: gas dynamics on one core and on two, one of which another process uses; ten minutes
	tools/dsmc

shared: release       ## docs/results/shared.md: loops on cores that others use, too; hours
	tools/shared

foresight: release    ## docs/results/foresight.md: forecasts and the chosen number of workers, compared with real workers whose messages cost; two hours
	tools/foresight

faults: release       ## docs/results/faults.md: what happens when workers, links and masters fail; hours
	tools/faults

docs: packages        ## the reference of the interface, HTML and man pages, into build/release/api
	cmake --preset release
	cmake --build --preset release --target docs

install: release      ## into PREFIX
	cmake --install build/release --prefix "$(PREFIX)"

fuzz: packages
	cmake --preset fuzz
	cmake --build --preset fuzz
	tools/fuzz $(FUZZ_SECONDS)

tidy: packages
	cmake --preset debug
	tools/tidy build/debug

format: packages
	tools/format

clean:
	rm -rf build

packages:
	tools/install-packages

release: packages
	cmake --preset release
	cmake --build --preset release
