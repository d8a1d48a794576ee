# upgrade-gate: `make help` lists the targets.

# One set of flags for building and testing: they are part of Go's cache key, and
# two sets would compile everything twice.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

VERSION ?= 0.1.0
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

BIN := $(CURDIR)/bin
LOCALCLUSTER := $(BIN)/localcluster
TOOL := go tool -modfile=hack/tools/go.mod
MODULES := . hack/localcluster hack/tools

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ See it work

.PHONY: demo
demo: build $(LOCALCLUSTER) ## Play the whole story on a real control plane (KEEP=1 leaves it up)
	@go run ./test/demo --operator $(BIN)/upgrade-gate-operator --localcluster $(LOCALCLUSTER) $(if $(KEEP),--keep)

.PHONY: up
up: $(LOCALCLUSTER) ## Start a local control plane with a fake node, and say how to reach it
	@$(LOCALCLUSTER) up

.PHONY: down
down: $(LOCALCLUSTER) ## Stop it
	@$(LOCALCLUSTER) down

##@ Build

.PHONY: build
build: ## Build the operator into bin/
	@go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

.PHONY: $(LOCALCLUSTER)
$(LOCALCLUSTER):
	@go build -C hack/localcluster -o $(LOCALCLUSTER) .

.PHONY: generate
generate: ## Write the CRDs and the deep copies anew
	@$(TOOL) controller-gen object paths=./api/... crd paths=./api/... output:crd:artifacts:config=config/crd

##@ Check

.PHONY: test
test: lint $(LOCALCLUSTER) ## Every check and every test; the first time builds a control plane
	@go test -C hack/localcluster ./...
	@assets="$$($(LOCALCLUSTER) assets)" && KUBEBUILDER_ASSETS="$$assets" KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=120s \
		$(TOOL) gotestsum --format pkgname-and-test-fails -- -timeout 20m -p 2 ./...

.PHONY: race
race: $(LOCALCLUSTER) ## The same tests under the race detector (needs a C compiler)
	@assets="$$($(LOCALCLUSTER) assets)" && CGO_ENABLED=1 KUBEBUILDER_ASSETS="$$assets" KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=120s \
		go test -race -timeout 30m -p 1 ./api/... ./cmd/... ./pkg/...

.PHONY: bench
bench: $(LOCALCLUSTER) ## Measure against a bare informer-and-patch loop
	@assets="$$($(LOCALCLUSTER) assets)" && KUBEBUILDER_ASSETS="$$assets" KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=120s \
		go test -run '^$$' -bench . -benchtime 1x -timeout 20m -v ./test/bench

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz the decoders, FUZZTIME each
	@go test -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME) ./pkg/conditions
	@go test -run '^$$' -fuzz FuzzAssess -fuzztime $(FUZZTIME) ./pkg/component

.PHONY: lint
lint: ## Formatting, vet and the import rules
	@unformatted="$$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)"; \
	if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	@go vet ./...
	@go vet -C hack/localcluster ./...
	@$(TOOL) depguard ./api/... ./cmd/... ./pkg/...

.PHONY: verify
verify: generate ## Write everything generated anew and fail if git sees a difference
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done
	@git diff --exit-code && test -z "$$(git status --porcelain)" || { git status --short; echo "commit what was generated"; exit 1; }

.PHONY: clean
clean: ## Remove bin/; the built control plane stays in the cache
	@rm -rf $(BIN)
