export const getWeatherTool = {
  name: 'get_weather',
  description:
    'Current weather in one city: temperature and sky. ' +
    'Use it for questions about now; for tomorrow and later use get_forecast.',
  category: 'read',
  version: '1.2.0',
  status: 'active',
  schema: {
    city: { type: 'string', description: "The city's name, as the user wrote it" },
    units: { type: 'string', optional: true, enum: ['celsius', 'fahrenheit'] },
  },
  execute: async ({ city }: { city: string }) => fetch(`https://weather.example/now/${city}`),
};
