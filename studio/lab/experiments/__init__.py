"""The experiments of the Lab. Each is a one-file plug-in: a question, a measurement and a finding."""
