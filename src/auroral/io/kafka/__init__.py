"""Kafka topics as sources; see docs/kafka.md."""
