"use strict";
const charts = JSON.parse(document.getElementById("charts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");

function inked(trace, inks) {
  for (const [path, pair] of Object.entries(inks)) {
    const keys = path.split("."), last = keys.pop();
    let place = trace;
    for (const key of keys) place = place[key] ??= {};
    place[last] = pair[dark.matches ? 1 : 0];
  }
  return trace;
}

function themed(chart) {
  const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line") };
  const layout = structuredClone(chart.layout);
  layout.font = { color: colour("--ink"), family: getComputedStyle(document.body).fontFamily, size: 12 };
  layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
  layout.margin = { l: 8, r: 12, t: 22, b: 8 };
  layout.legend = { orientation: "h", x: 0, y: 0, yref: "container", yanchor: "bottom", font: { size: 12 } };
  layout.hoverlabel = { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--ink") } };
  layout.dragmode = coarse.matches ? false : "zoom";
  for (const key of Object.keys(layout)) if (/^[xy]axis/.test(key)) layout[key] = { ...axis, ...layout[key] };
  for (const shape of layout.shapes ?? []) shape.line = { ...shape.line, color: colour("--quiet") };
  return { data: chart.data.map((trace, number) => inked(structuredClone(trace), chart.inks[number])), layout };
}

function draw() {
  charts.forEach((chart, number) => {
    const { data, layout } = themed(chart);
    Plotly.react(`chart-${number}`, data, layout, { responsive: true, displaylogo: false, displayModeBar: false });
  });
}

dark.addEventListener("change", draw);
draw();
