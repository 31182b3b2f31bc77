"use strict";
// Vega gives a place's width to one view only: views side by side get theirs here, one below the
// other where the place is narrow.
const AXES = 64; // pixels that the labels of a view take
const fitted = (spec, width) => {
  if (!spec.concat) return spec;
  const { width: _width, autosize: _autosize, height: _height, ...rest } = spec;
  const columns = width < 640 ? 1 : spec.concat.length;
  const each = Math.floor(width / columns) - AXES;
  return { ...rest, columns, concat: spec.concat.map((view) => ({ ...view, width: each })) };
};
// Draw a figure when it comes into sight: those in folded sections have no width before.
const draw = (place) =>
  vegaEmbed(place, fitted(JSON.parse(place.nextElementSibling.textContent), place.clientWidth), {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false,
  }).then(() => { place.style.minHeight = "0"; });
const sight = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) { sight.unobserve(entry.target); draw(entry.target); }
  }
}, { rootMargin: "400px" });
for (const place of document.querySelectorAll(".plot")) {
  place.hidden = false;
  sight.observe(place);
}
