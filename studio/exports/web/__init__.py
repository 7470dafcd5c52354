"""Run the WebAssembly engine of exported web pages. See wasm_engine.py."""
