"""The words of links and queues."""
