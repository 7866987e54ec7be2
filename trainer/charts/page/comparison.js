// The page that compares runs: charts.js stands before it, and the data in the page.
const data = JSON.parse(document.getElementById("data").textContent);
const places = data.map((chart) => [document.getElementById(chart.id), chart]);
const redraw = () => { for (const [place, chart] of places) drawChart(place, chart, options); };
const options = addControls(document.getElementById("controls"), redraw);
new ResizeObserver(redraw).observe(document.querySelector(".charts"));
redraw();
