"""Kafka topics as sources; see docs/how-to/kafka.md."""
