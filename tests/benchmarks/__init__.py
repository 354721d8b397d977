"""What the platform costs, measured beside bare Spark and beside Kafka Streams: `make bench`."""
