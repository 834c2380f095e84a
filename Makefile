# The short way to everything; each target first installs the system packages that are missing.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

.PHONY: docs demo quick check soak bench stragglers paper1 paper2 paper3 paper4 dsmc shared foresight faults install fuzz tidy format clean packages release

demo: packages        ## a real planning problem on unequal workers, start to end
	tools/demo

quick: packages       ## what a developer runs all day: the quick tests under sanitizers
	tools/check quick

check: packages       ## everything that must hold: builds, tests, sanitizers, fuzzing
	FUZZ_SECONDS=$(FUZZ_SECONDS) tools/check

soak: packages        ## docs/results/soak.md: all tests at full size, sweeps, series of failures, long fuzzing; hours
	tools/check soak

bench: release        ## what Kilter costs and what it reaches
	build/release/bench/kilter-bench
	TRANSPORTS=ipc KINDS=sleep TASKS_MS=0.5 BYTES="8 100000" WORKERS="2 8 32" ENGINES=events FOUND=build/foresight-short OUTPUT=/dev/stdout tools/foresight

stragglers: release   ## docs/results/stragglers.md: AUTO against the best of the other policies on random platforms
	tools/stragglers

paper1: release       ## docs/results/paper1.md: the first paper's figures, and what is reached beyond them
	tools/paper1

paper2: release       ## docs/results/paper2.md: loops that move their own work, on two real cores and simulated; half an hour
	tools/paper2

paper3: release       ## docs/results/paper3.md: planning on workers that differ and come and go; an hour
	tools/paper3

paper4: release       ## docs/results/paper4.md: mutual help without a centre, simulated with up to 65,536 peers; five minutes
	tools/paper4

dsmc: release         ## docs/results/dsmc.md: gas dynamics on one core and on two, one of which another process uses; ten minutes
	tools/dsmc

shared: release       ## docs/results/shared.md: loops on cores that others use, too; hours
	tools/shared

foresight: release    ## docs/results/foresight.md: forecasts and the number of workers chosen, against real workers whose messages cost; two hours
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
