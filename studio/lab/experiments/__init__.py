"""The experiments of the Lab. Each is a plug-in of one file: a question, a measurement and a finding."""
