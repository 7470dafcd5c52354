// The page of a classifier or a regression: what it says of a picture that is chosen, dropped or pasted.

const about = JSON.parse(document.getElementById("about").textContent);
const drop = document.getElementById("drop"), input = document.getElementById("file"), said = document.getElementById("said");
const rows = document.getElementById("answers"), canvas = document.getElementById("picture");
const opened = openModel(bytesIn("engine"), bytesIn("model"));

opened.then(
  () => (document.body.dataset.state = "ready"),
  (error) => {
    said.textContent = "This browser can't run the model: " + error.message;
    document.body.dataset.state = "failed";
  },
);

// The picture in the middle of the canvas, smaller by a whole factor if it is larger, never larger.
async function look(file) {
  const model = await opened, picture = await createImageBitmap(file);
  const factor = Math.ceil(Math.max(picture.width, picture.height) / about.size);
  const [width, height] = [Math.floor(picture.width / factor), Math.floor(picture.height / factor)];
  canvas.width = canvas.height = about.size;
  canvas.style.width = canvas.style.height = `${about.size * Math.max(1, Math.floor(160 / about.size))}px`;
  canvas.hidden = false;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, (about.size - width) >> 1, (about.size - height) >> 1, width, height);
  const found = model.predict(context.getImageData(0, 0, about.size, about.size).data);
  said.textContent = file.name || "The picture";
  const order = [...found.keys()];
  if (about.makes === "labels") order.sort((one, other) => found[other] - found[one]);
  rows.replaceChildren(...order.map((place) => row(about.names[place], found[place])));
  document.body.dataset.state = "done";
}

function row(name, value) {
  const line = document.createElement("tr");
  const words = about.makes === "labels" ? `${(100 * value).toFixed(1)} %` : String(Number(value.toPrecision(4)));
  for (const text of [name, words]) line.insertCell().textContent = text;
  return line;
}

function take(files) {
  if (files.length) look(files[0]).catch((error) => (said.textContent = `It can't be read: ${error.message}`));
}

input.onchange = () => take(input.files);
drop.ondragover = (event) => event.preventDefault();
drop.ondrop = (event) => {
  event.preventDefault();
  take(event.dataTransfer.files);
};
onpaste = (event) => take(event.clipboardData.files);
