"use strict";
// Draw a figure when it comes into sight: those in folded sections have no width before.
const draw = (place) =>
  vegaEmbed(place, JSON.parse(place.nextElementSibling.textContent), {
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
