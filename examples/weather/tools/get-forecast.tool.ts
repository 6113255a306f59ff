export const getForecastTool = {
  name: 'get_forecast',
  description: 'Forecast for one city, one to seven days ahead.',
  category: 'read',
  version: '2.0.1',
  status: 'active',
  schema: {
    city: { type: 'string' },
    days: { type: 'number', optional: true, description: 'How many days, 3 if not said' },
  },
  execute: async ({ city }: { city: string }) => fetch(`https://weather.example/forecast/${city}`),
};
