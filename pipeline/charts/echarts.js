// The part of Apache ECharts that reports need, for esbuild: 0.66 MB instead of 1.12 MB of all. `make charts` makes
// fanlight_spark/jobs/page/echarts.js of it, which is committed, and a test makes it again and compares.
import * as echarts from "echarts/core";
import { BarChart, CandlestickChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, TitleComponent, TooltipComponent,
} from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

echarts.use([
  BarChart, CandlestickChart, LineChart, ScatterChart,
  AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkAreaComponent, TitleComponent, TooltipComponent,
  CanvasRenderer,
]);
globalThis.echarts = { init: echarts.init };
