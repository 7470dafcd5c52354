// Shared by the pages that draw. A Web Worker draws a result per message, so that the page stays responsive.

const about = JSON.parse(document.getElementById("about").textContent);
const form = document.forms.ask, list = document.getElementById("sprites");
const statusLine = document.getElementById("status"), bar = document.getElementById("bar");
let currentRound = 0, drawn = [];

// Opens the model in a worker and returns the worker. answer(model, request): draws a result, in the worker.
// add(result, isLast): shows a result. noun: what a result is.
function startWorker(answer, noun, add) {
  const source = document.getElementById("engine-code").textContent + `\n(${work})(${answer});`;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.postMessage({ engine: bytesIn("engine"), model: bytesIn("model"), attributes: about.attributes });
  worker.onmessage = ({ data }) => show(data, noun, add);
  return worker;
}

// Runs in the worker: opens the model, then draws a result per message.
function work(answer) {
  let model;
  onmessage = async ({ data }) => {
    try {
      if (data.engine) {
        model = await openModel(data.engine, data.model, data.attributes);
        postMessage({ ready: true });
        return;
      }
      const begun = performance.now(), result = answer(model, data);
      postMessage({ ...result, round: data.round, seed: data.seed, seconds: (performance.now() - begun) / 1000 });
    } catch (error) {
      postMessage({ failed: error.message });
    }
  };
}

function show(answer, noun, add) {
  if (answer.failed) {
    statusLine.textContent = "This browser can't run the model: " + answer.failed;
    document.body.dataset.state = "failed";
    return;
  }
  if (answer.ready) {
    form.go.disabled = false;
    statusLine.textContent = "Ready.";
    document.body.dataset.state = "ready";
    return;
  }
  if (answer.round !== currentRound) return; // from an earlier request
  drawn.push(answer);
  const isLast = drawn.length === bar.max;
  add(answer, isLast);
  bar.value = drawn.length;
  const mean = drawn.reduce((sum, each) => sum + each.seconds, 0) / drawn.length;
  statusLine.textContent = `${drawn.length} of ${bar.max}: ${mean.toFixed(2)} s per ${noun}`;
  if (isLast) {
    bar.hidden = true;
    document.body.dataset.state = "done";
  }
}

// Clears the results and returns the number of the new round.
function beginRound(count) {
  drawn = [];
  list.replaceChildren();
  bar.hidden = false;
  bar.max = count;
  bar.value = 0;
  document.body.dataset.state = "drawing";
  return ++currentRound;
}

function download(canvas, name) {
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
