"""What a finding or a number of a report means, with an example that is computed when asked."""
