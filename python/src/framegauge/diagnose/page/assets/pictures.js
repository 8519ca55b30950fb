"use strict";
// Makes the pictures of the page, and leads links of findings to them.
(async () => {
  const data = JSON.parse(document.getElementById("pictures-data").textContent);
  const pictures = new Map();
  for (const line of document.querySelectorAll(".needs-script")) line.hidden = false;
  for (const line of document.querySelectorAll(".without-script")) line.hidden = true;

  const paint = () => pictures.forEach((each) => each.paint());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  matchMedia("print").addEventListener("change", paint);
  addEventListener("beforeprint", paint);
  addEventListener("afterprint", paint);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".to-picture");
    const picture = link && pictures.get(link.dataset.connection);
    if (picture) requestAnimationFrame(() => picture.reveal(link)); // after the page has gone there
  });
  // One after the other, so that the first is there at once.
  for (const place of document.querySelectorAll(".plot")) {
    const packed = data[place.dataset.connection];
    pictures.set(place.dataset.connection, new Picture(place, packed, await Plot.unpack(packed)));
  }
  document.documentElement.dataset.drawn = "all";
})();
