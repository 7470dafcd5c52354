"""Run the exported web page's WebAssembly engine here, to check the page. See wasm_engine.py."""
