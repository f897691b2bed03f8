module hearth.test/pyroscope

go 1.25

require (
	connectrpc.com/connect v1.19.2
	github.com/grafana/pyroscope/api v1.6.0
)
