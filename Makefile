# What a contributor runs. Each target says what is missing.
export CGO_ENABLED = 0
GO ?= go

.PHONY: build test check sim mutants chaos bench clean

build: ## the binary, as tandem
	$(GO) build -trimpath -o tandem ./cmd/node

test: check ## everything that must hold before a change lands
	$(GO) test -timeout 12m ./...
	cd bench && $(GO) vet ./... && $(GO) test -timeout 5m ./...

check: ## format, vet, staticcheck
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go 1.26 or newer from your distribution or from go.dev"; exit 1; }
	@unformatted=$$(gofmt -l cmd internal bench); [ -z "$$unformatted" ] || { echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags crashpoints ./cmd/node
	$(GO) tool staticcheck ./...

SEEDS ?= 20000
FROM ?= 1

sim: ## more stories of two nodes to which all goes wrong: make sim SEEDS=100000 FROM=1
	$(GO) test ./internal/sync/sim -run '^TestSeeds$$' -v -timeout 0 -seeds $(SEEDS) -from $(FROM)

mutants: ## break replication in twenty ways, and see that the stories tell
	$(GO) run ./internal/sync/sim/mutants

SECONDS ?= 600
SEED ?= 0

chaos: ## real processes that are killed, on lines that fail: make chaos SECONDS=600 SEED=0
	$(GO) test ./cmd/node -run Storm -v -timeout 0 -storm $(SECONDS)s -seed $(SEED)

bench: ## beside PocketBase and PouchDB, in one run; wants wrk, and node with npm
	@command -v wrk >/dev/null || { echo "wrk is missing: install the package wrk (Debian: apt-get install wrk)"; exit 1; }
	cd bench && $(GO) run .

clean:
	rm -rf tandem dist
