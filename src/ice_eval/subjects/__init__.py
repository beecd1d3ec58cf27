"""What is explained: texts, chains of thought, and the units of both."""
