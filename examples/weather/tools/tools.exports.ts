export { getWeatherTool } from './get-weather.tool';
export { getForecastTool } from './get-forecast.tool';
export { getAirQualityTool } from './get-air-quality.tool';
export { listAlertsTool } from './list-alerts.tool';
// export { getTidesTool } from './get-tides.tool';
