# The operator: one static binary, no shell, no root.
ARG GO_VERSION=1.26
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
ARG TARGETOS TARGETARCH VERSION=0.1.0 COMMIT=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY pkg pkg
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" \
    -o /upgrade-gate-operator ./cmd/upgrade-gate-operator

FROM scratch
COPY --from=build /upgrade-gate-operator /upgrade-gate-operator
USER 65532:65532
ENTRYPOINT ["/upgrade-gate-operator"]
