"use strict";
// Vega gives a place's width to one view only: views side by side get theirs here, one below the
// other where the place is narrow. `axes` is the pixels that the labels of a view take.
const fitted = (spec, width, axes) => {
  if (!spec.concat) return spec;
  const { width: _width, autosize: _autosize, height: _height, ...rest } = spec;
  const columns = width < 640 ? 1 : spec.concat.length;
  const each = Math.floor(width / columns - axes);
  const sized = (view) => ({ ...view, width: Math.min(each, view.width ?? each) });
  return { ...rest, columns, concat: spec.concat.map(sized) };
};
// Labels may take more than was thought: then again, as much narrower as they are too wide.
const draw = async (place, axes = 64) => {
  const spec = JSON.parse(place.nextElementSibling.textContent);
  await vegaEmbed(place, fitted(spec, place.clientWidth, axes), {
    mode: "vega-lite", renderer: "svg", ast: true, actions: false,
  });
  const over = place.querySelector("svg").getBoundingClientRect().width - place.clientWidth;
  if (spec.concat && over > 0 && axes < 200) await draw(place, axes + Math.ceil(over));
  place.style.minHeight = "0";
};
// Draw a figure when it comes into sight: those in folded sections have no width before.
const sight = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) { sight.unobserve(entry.target); draw(entry.target); }
  }
}, { rootMargin: "400px" });
for (const place of document.querySelectorAll(".plot")) {
  place.hidden = false;
  sight.observe(place);
}
