# What a Prometheus and a Grafana use of the exporter's metrics.
monitoringdir = $(pkgdatadir)/monitoring
dist_monitoring_DATA = monitoring/alerts.yaml monitoring/alerts_test.yaml \
	monitoring/grafana.json
